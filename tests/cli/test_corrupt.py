from __future__ import annotations

from PIL import Image

from onedomain.data import processes


def test_corrupt(onedomain, tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: 1)
    (tmp_path / "in" / "cat").mkdir(parents=True)
    Image.new("RGB", (40, 40), (90, 120, 30)).save(tmp_path / "in" / "cat" / "a.png")
    arguments = ["corrupt", tmp_path / "in", "--out", tmp_path / "out", "--data", tmp_path]
    code, out, _ = onedomain(*arguments, "--kind", "fog", "--severity", 3)
    assert (code, out) == (0, f"{tmp_path / 'out'}: 1 images, 1 with the constants of cifar10-c\n")
    assert Image.open(tmp_path / "out" / "cat" / "a.png").size == (40, 40)
    assert "all images are there already" in onedomain(*arguments, "--kind", "fog")[1]
    arguments[3] = tmp_path / "all"
    code, out, err = onedomain(*arguments, "--kind", "all", "--severity", "all")
    assert code == 0
    assert "90 images" in out
    assert "left out: frost: frost1.png" in err
    for wrong, expected in (
        (["--kind", "frost"], "frost: frost1.png, frost2.png"),
        (["--kind", "rain"], "--kind: 'rain' is not known"),
        (["--kind", "fog", "--severity", "7"], "--severity: got '7'"),
        (["--kind", "fog", "--constants", "x"], "--constants: 'x' is not known"),
        (["--kind", "fog", "--seed", "-1"], "--seed: got -1"),
    ):
        code, out, err = onedomain("corrupt", tmp_path / "in", "--out", tmp_path / "new", "--data", tmp_path, *wrong)
        assert (code, out) == (2, "")
        assert expected in err
        assert len(err.splitlines()) == 1
    assert not (tmp_path / "new").exists()
