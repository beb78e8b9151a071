package badgerstore_test

func runChild(string) int { return 1 }
