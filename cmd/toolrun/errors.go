package main

func isCatalogError(error) bool { return false }
func isHostError(error) bool    { return false }
func isDataError(error) bool    { return false }
