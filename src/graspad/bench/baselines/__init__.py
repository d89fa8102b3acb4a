"""The methods that GRASP is measured against, one per file."""
