"""Privacy attack-and-audit workbench for perturbed microdata."""
