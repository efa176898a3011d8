"""`onedomain report`: what a person sees of runs, as one self-contained HTML file."""
