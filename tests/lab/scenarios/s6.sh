# s6: inodes. A pod makes empty files, 2000 a second, on a filesystem of 20000 inodes; threshold 5 %.
#vm --memory 512M --disk 400M:20000 --timeout 180
. /lab/lib.sh
pod web-a  burstable  0 64 hog mem --name web-a --max 24
pod filler besteffort 0 0  sh -c "$wait_go hog fill --name filler --dir $FILL_DIR --inodes 30000 --rate ${RATE:-2000} --step 1000"
mkdir -p /data/pods
HARD="memory.available<100Mi,nodefs.inodesFree<5%"
start_agent
go
referee --fs /data --fs-inodes $(df -i /data | awk 'NR==2{print int($2/20)}') --expect filler --timeout ${LIMIT:-30} --clear
finish; df -i /data
