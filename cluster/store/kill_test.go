package store

const childEnv = "KVNET_STORE_TEST_CHILD"

func child(dir string) int { return 0 }
