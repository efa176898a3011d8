"""What a person sees while the program runs: progress and tables."""
