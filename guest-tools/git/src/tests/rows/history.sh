init
echo 1 > a; ci one
echo 2 >> a; mkdir d; echo x > d/x; ci 'two

Body of two.

Second paragraph.'
git tag light
git tag -m 'An annotated tag' v1.0
git checkout -qb side
echo side > s; ci 'on the side'
echo more >> s; ci 'more on the side'
git checkout -q main
echo 3 >> a; ci 'three with a long subject line that goes on and on and on and on and on and on until it is very long'
tick; git merge -q --no-ff -m 'Merge side' side
git mv d/x d/y; seq 1 10 >> d/y; ci 'rename and grow'
echo z > d/z; ci 'add z'
seq 1 60 > big; ci 'add big'
git mv big big2; sed -i 10d big2; ci 'move big'
tick; git commit -q --allow-empty -m 'nothing changed'
printf 'Proper Name <proper@example.com> A U Thor <author@example.com>\n' > .mailmap; ci mailmap
git rm -q s; ci 'remove s'
GIT_AUTHOR_NAME='Other Person' GIT_AUTHOR_EMAIL=o@example.com ci 'x' --allow-empty --author='Other <o@example.com>'
git tag -m 'tag of a tag' nested v1.0
git tag blob-tag HEAD:a
git tag tree-tag HEAD^{tree}
