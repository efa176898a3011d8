"""Changes of images, made batch by batch while training."""
