# s7: pids. pid_max is 2048; a pod forks 200 a second up to 1600; threshold pid.available < 25 %.
# (Linux keeps pids below 300 for boot: once the counter has wrapped only pid_max - 300 are usable.)
#vm --memory 768M --timeout 180
. /lab/lib.sh
echo 2048 >/proc/sys/kernel/pid_max
pod web-a burstable  0 64 hog mem --name web-a --max 24
pod bomb  besteffort 0 0  sh -c "$wait_go hog fork --name bomb --max ${MAX:-1600} --rate ${RATE:-200} --step 50"
HARD="memory.available<100Mi,pid.available<25%"
start_agent
go
referee --pid 512 --expect bomb --timeout ${LIMIT:-20} --clear
finish
