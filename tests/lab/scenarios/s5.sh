# s5: disk bytes. A pod fills a 400 MB filesystem at 40 MB/s; nodefs.available threshold 10 %.
#vm --memory 512M --disk 400M --timeout 180
. /lab/lib.sh
pod web-a  burstable  0 64 hog mem --name web-a --max 24
pod filler besteffort 0 0  sh -c "$wait_go hog fill --name filler --dir $FILL_DIR --max 1000 --rate ${RATE:-40}"
mkdir -p /data/pods
HARD="memory.available<100Mi,nodefs.available<10%"
start_agent
go
referee --fs /data --fs-bytes $(df -m /data | awk 'NR==2{print int($2/10)*1048576}') --expect filler --timeout ${LIMIT:-30} --clear
finish; df /data; df -i /data
