"""Store: JSON items under a namespace and a key, each with its owner, of applications and Recap itself."""
