"""The paper as pure functions: graph, spectrum, path, score."""
