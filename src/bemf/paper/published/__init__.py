"""What the paper's published code does that the paper does not say; nothing outside depends on it but
the split of the benchmark data.
"""
