// The program of our own that a node needs: what it does is in main.go. It depends on the standard library only.
module kindred.local/parts/node

go 1.26.0
