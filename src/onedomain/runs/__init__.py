"""The run folder: files, manifest, records. No model is needed to read it."""
