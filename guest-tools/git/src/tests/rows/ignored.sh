init
mkdir -p build/x src/build keep/deep logs a/b/c nested only-ignored vendor
cat > .gitignore <<'X'
# a comment
*.o
/build/
!important.o
logs/*
!logs/keep.txt
a/**/c
\#literal
trailing\ 
*.tmp
keep/*
!keep/deep
doc/*.txt
X
printf '*.local\n!x.local\n' > src/.gitignore
echo 'excluded' > .git/info/exclude
touch build/x/1 src/build/file important.o some.o src/some.o logs/1 logs/keep.txt a/b/c/d a/b/e '#literal' x.tmp excluded
touch src/a.local src/x.local keep/1 keep/deep/2 only-ignored/z.o vendor/v.o vendor/w
touch tracked.o; mkdir doc; touch doc/a.txt doc/b.md; mkdir doc/sub; touch doc/sub/c.txt
git add -f tracked.o build/x/1; tick; git commit -qm base
touch build/x/2
init nested; touch nested/f
