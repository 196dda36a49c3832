for children in '' --children; do
	report translated $children python3 "$programs/subprocesses.py"
done
