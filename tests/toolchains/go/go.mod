module command

go 1.24
