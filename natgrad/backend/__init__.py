"""What differs by device, or is there because of XLA and the libraries under it."""
