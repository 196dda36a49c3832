# A repository made, branched, merged, packed, cloned and searched, with fixed dates so that every hash is known.
export GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat GIT_TERMINAL_PROMPT=0
for who in AUTHOR COMMITTER; do
	export GIT_${who}_NAME=Tester GIT_${who}_EMAIL=tester@example.org GIT_${who}_DATE='2020-01-01T00:00:00+0000'
done
git config --global init.defaultBranch main
git config --global advice.detachedHead false
git config --global gc.auto 0
git() { translated git "$@"; }

git init -q repository && cd repository || exit
cp -r /usr/share/common-licenses licences && rm -f licences/GPL licences/LGPL licences/GFDL
git add . && git commit -q -m first && git rev-parse HEAD
for i in {1..8}; do
	echo "line $i" >>file$((i % 3)) && git add . && git commit -q -m "commit $i"
done
git checkout -q -b side HEAD~3
sed -i 's/the/THE/' licences/GPL-3 && git commit -q -a -m side
git checkout -q main && git merge -q -m merge side && git rev-parse HEAD
echo conflict >file0 && git commit -q -a -m ours
git checkout -q side && echo other >file0 && git add file0 && git commit -q -m theirs
git merge main; echo "conflict $?"
git status --short; git merge --abort
git rebase main >/dev/null 2>&1; echo "rebase $?"; git rebase --abort
git checkout -q main
git log --graph --oneline --stat | tail -n 30
git log -S'THE' --format=%h -- licences
git diff HEAD~4 --shortstat
git blame -s file1
git gc -q --aggressive && git count-objects -v | grep -E '^(count|in-pack|packs)'
git fsck --full 2>&1 | sort
cd .. && git clone -q repository copy && git -C copy log --format=%H | md5sum
git clone -q --depth 2 "file://$PWD/repository" shallow && git -C shallow rev-list --count HEAD
git -C repository archive --format=tar HEAD | md5sum
git -C repository bundle create -q ../all.bundle --all && git -C repository bundle verify -q ../all.bundle; echo "bundle $?"
git -C repository grep -n -i 'patent licen[cs]e' HEAD -- licences | md5sum
git -C repository format-patch -q -3 && ls repository/*.patch
git nosuchcommand 2>&1 | head -1
