"""Other systems beside Holdfast, in the same rounds on the same disk, every write flushed."""
