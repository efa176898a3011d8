"""The paper's tables: declared as grids of runs, its numbers beside ours."""
