"""From a method and a source to a run."""
