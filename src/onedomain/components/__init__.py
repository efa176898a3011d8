"""What methods are made of: equations, ascent, meta-learning, the auto-encoder, noise, augmentations."""
