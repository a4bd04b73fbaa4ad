init
mkdir 'with space' 'ünï'
echo 1 > 'with space/a file'; echo 2 > 'ünï/cödé'; echo 3 > 'quo"te'; echo 4 > $'tab\there'; echo 5 > '[brackets]'; echo 6 > '-dash'
ci 'names äöü'
for f in 'with space/a file' 'ünï/cödé' 'quo"te' '[brackets]' ./-dash; do echo more >> "$f"; done
git mv $'tab\there' 'moved to'
git add 'quo"te'
echo u > 'un tracked'; echo v > 'ünträcked'; echo w > 'b\s'
