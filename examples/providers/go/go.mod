module files

go 1.19
