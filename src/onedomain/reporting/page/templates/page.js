"use strict";
// The page is complete without this: it sorts tables, copies commands, filters images, and unfolds all for printing.

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    const button = head.querySelector("button");
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const text = "text" in button.dataset;
      // Numbers begin with the largest, names with A.
      const first = text ? "ascending" : "descending";
      const order = now === "none" ? first : now === "ascending" ? "descending" : "ascending";
      for (const other of heads) other.setAttribute("aria-sort", other === head ? order : "none");
      sortRows(table.tBodies[0], place, text, order === "ascending" ? 1 : -1);
    });
  });
}

function sortRows(body, place, text, sign) {
  const value = (row) => row.cells[place].dataset.value;
  const rows = [...body.rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === "" || y === "") return (x === "") - (y === ""); // what was not measured comes last, either way
    return sign * (text ? x.localeCompare(y) : x - y);
  });
  body.append(...rows);
}

for (const button of document.querySelectorAll(".copy")) {
  if (!navigator.clipboard) break; // text can still be marked by hand
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling);
      button.textContent = "Marked: copy it";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

for (const filter of document.querySelectorAll(".filter")) {
  const cards = [...filter.parentElement.querySelectorAll(".image-card")];
  const select = filter.querySelector("select");
  filter.hidden = false;
  const show = () => {
    for (const card of cards) card.hidden = select.value !== "all" && !card.dataset.kinds.split(" ").includes(select.value);
    const left = cards.filter((card) => !card.hidden).length;
    filter.querySelector(".filter-count").textContent = `${left} of ${cards.length}`;
  };
  select.addEventListener("change", show);
  show();
}

let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll("details:not([open])")];
  for (const details of unfolded) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of unfolded) details.open = false;
});
