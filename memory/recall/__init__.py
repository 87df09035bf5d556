"""Finding what is known: by words, by meaning, by age and weight, fused by rank. Works with each part missing."""
