#include "cli/flags/help_topics.h"

#include <algorithm>

namespace spillway::cli {
namespace {

constexpr std::string_view kFirst = "Commands to begin with";
constexpr std::string_view kRun = "Commands that run a cluster or a part of it";
constexpr std::string_view kShow = "Commands that show and explain";
constexpr std::string_view kAct = "Commands that act";
constexpr std::string_view kSimulate = "Commands for simulations and recordings";
constexpr std::string_view kKeep = "Commands for configuration and data";

constexpr HelpExample kUp[] = {
    {"sudo spillway up", "One node with everything a cluster needs; Ctrl-C ends it"},
    {"sudo spillway up --nodes 3 --node-memory 512Mi", "Three nodes of 512Mi on this machine"},
    {"sudo spillway up --bind-address 0.0.0.0 --tls-san edge.example.org", "Serve other machines as well"}};
constexpr std::string_view kUpFlags[] = {"--nodes",       "--node-memory",   "--node-name",    "--runtime",
                                         "--data-dir",    "--bind-address",  "--port",         "--tls-san",
                                         "--pod-network", "--proxy",         "--dns",          "--storage",
                                         "--node-labels", "--eviction-hard", "--pods-at-stop", "--write-kubeconfig",
                                         "--manifests",   "--print-config"};

constexpr HelpExample kAgent[] = {
    {"sudo spillway agent --kubeconfig agent.kubeconfig", "Run this machine as a node of that cluster"},
    {"sudo spillway agent --kubeconfig agent.kubeconfig --config /var/lib/kubelet/config.yaml",
     "Take over a kubelet's configuration"},
    {"sudo spillway agent --companion --shadow --kubeconfig companion.kubeconfig",
     "Watch beside a kubelet and evict nothing"}};
constexpr std::string_view kAgentFlags[] = {"--kubeconfig",
                                            "--bootstrap-kubeconfig",
                                            "--node-name",
                                            "--node-ip",
                                            "--config",
                                            "--container-runtime-endpoint",
                                            "--node-memory",
                                            "--node-labels",
                                            "--register-with-taints",
                                            "--max-pods",
                                            "--eviction-hard",
                                            "--eviction-soft",
                                            "--system-reserved",
                                            "--state-dir",
                                            "--companion",
                                            "--shadow",
                                            "--pods-at-stop",
                                            "--print-config"};

constexpr HelpExample kApiserver[] = {
    {"spillway apiserver", "Serve on 127.0.0.1:6443 from an embedded database"},
    {"spillway apiserver --bind-address 0.0.0.0 --tls-san api.example.org", "Serve other machines"},
    {"spillway apiserver --etcd-servers https://etcd-0:2379 --etcd-cafile ca.pem", "Keep the objects in etcd"}};
constexpr std::string_view kApiserverFlags[] = {"--data-dir",
                                                "--etcd-servers",
                                                "--bind-address",
                                                "--port",
                                                "--tls-san",
                                                "--write-kubeconfig",
                                                "--client-ca-file",
                                                "--token-auth-file",
                                                "--enable-bootstrap-token-auth",
                                                "--audit-policy-file",
                                                "--audit-log-path"};

constexpr HelpExample kController[] = {
    {"spillway controller --kubeconfig controller.kubeconfig --shadow", "Only report what it would do differently"},
    {"spillway controller --kubeconfig controller.kubeconfig", "Run all controllers, while this process leads"},
    {"spillway controller --kubeconfig controller.kubeconfig --limit-taints 10/10m,zone=3/10m",
     "Taint at most ten nodes in ten minutes"}};
constexpr std::string_view kControllerFlags[] = {"--kubeconfig",
                                                 "--config",
                                                 "--controllers",
                                                 "--shadow",
                                                 "--beside-stock-controllers",
                                                 "--limit-taints",
                                                 "--limit-deletions",
                                                 "--zone-full-disruption",
                                                 "--respect-disruption-budgets",
                                                 "--wait-for-replacement",
                                                 "--node-monitor-grace-period",
                                                 "--node-eviction-rate",
                                                 "--recording-dir",
                                                 "--secure-port",
                                                 "--print-config"};

constexpr HelpExample kScheduler[] = {
    {"spillway scheduler --kubeconfig scheduler.kubeconfig", "Schedule the pods of a cluster"},
    {"spillway scheduler --kubeconfig scheduler.kubeconfig --config scheduler.yaml", "Use profiles and extenders"},
    {"spillway scheduler --config scheduler.yaml --write-config-to full.yaml", "Write the configuration in effect"}};
constexpr std::string_view kSchedulerFlags[] = {"--kubeconfig",      "--config",
                                                "--write-config-to", "--respect-disruption-budgets",
                                                "--limit-deletions", "--secure-port"};

constexpr HelpExample kProxy[] = {
    {"sudo spillway proxy --kubeconfig proxy.kubeconfig", "Forward connections to Services on this machine"},
    {"sudo spillway proxy --kubeconfig proxy.kubeconfig --cluster-cidr 10.244.0.0/16", "Name the range of pods"},
    {"sudo spillway proxy --cleanup", "Remove all rules that it made"}};
constexpr std::string_view kProxyFlags[] = {"--kubeconfig",         "--hostname-override", "--cluster-cidr",
                                            "--nodeport-addresses", "--masquerade-all",    "--cleanup"};

constexpr HelpExample kDns[] = {
    {"sudo spillway dns --kubeconfig dns.kubeconfig", "Answer for the names of Services and pods"},
    {"spillway dns --kubeconfig dns.kubeconfig --listen 127.0.0.1:5353", "Listen on another port"},
    {"spillway dns --kubeconfig dns.kubeconfig --cluster-domain corp.example", "Use another domain"}};

constexpr HelpExample kHollow[] = {
    {"spillway hollow --kubeconfig test.kubeconfig --nodes 1000", "A thousand nodes; Ctrl-C ends them"},
    {"spillway hollow zone-outage --kubeconfig test.kubeconfig --nodes 90", "Ninety nodes, one zone of which fails"},
    {"spillway hollow --kubeconfig test.kubeconfig --nodes 50 --rate 5 --delete-nodes",
     "Fifty nodes, slowly, and no Node is left"}};

constexpr HelpExample kDemo[] = {{"sudo spillway demo", "An eviction and a node failure, in about 20 seconds"},
                                 {"sudo spillway demo --keep", "Keep its database and logs"},
                                 {"spillway demo --log-level debug", "Show the log lines of its processes"}};

constexpr HelpExample kExplain[] = {{"spillway explain", "List what needs a look, with the reason of each"},
                                    {"spillway explain pod/web-0", "Why this pod was evicted, waits or fails"},
                                    {"spillway explain node/n1", "The node: its thresholds, and the pod that is next"}};

constexpr HelpExample kDoctor[] = {{"sudo spillway doctor", "Check this machine and the cluster of the kubeconfig"},
                                   {"spillway doctor --config kubelet.yaml", "Also check a KubeletConfiguration"},
                                   {"spillway doctor -o json", "The same for a program"}};

constexpr HelpExample kTop[] = {{"spillway top", "All nodes, those in trouble first"},
                                {"spillway top node n1", "One node: thresholds, and its pods in order of eviction"},
                                {"spillway top --watch", "Refresh every two seconds"}};

constexpr HelpExample kWatch[] = {{"spillway watch --since 1h", "Decisions of the last hour, and those that follow"},
                                  {"spillway watch -n shop", "Only about pods of one namespace"},
                                  {"spillway watch --reason Evicted,Preempted", "Only these reasons"}};

constexpr HelpExample kZones[] = {{"spillway zones", "Ready nodes, eviction rate and active brake of each zone"},
                                  {"spillway zones -o wide", "With the queue of nodes"},
                                  {"spillway zones -o json", "The same for a program"}};

constexpr HelpExample kDashboard[] = {{"spillway dashboard", "Print the URL to open, and serve until Ctrl-C"},
                                      {"spillway dashboard --port 8088", "On a fixed port"},
                                      {"spillway dashboard --context production", "For another cluster"}};

constexpr HelpExample kHold[] = {{"spillway hold --why \"switch replacement\"", "Hold the whole cluster"},
                                 {"spillway hold --zone zone-a", "Hold one zone"},
                                 {"spillway hold --context production", "Hold another cluster"}};

constexpr HelpExample kResume[] = {{"spillway resume", "End the hold of the whole cluster"},
                                   {"spillway resume --zone zone-a", "End the hold of one zone"},
                                   {"spillway resume --context production", "In another cluster"}};

constexpr HelpExample kStress[] = {{"spillway stress --memory 200Mi", "Allocate 200Mi at once and hold them"},
                                   {"spillway stress --memory 1Gi --rate 60Mi/s", "Grow by 60Mi each second"},
                                   {"spillway stress --memory 1Gi --hold 5m", "End after five minutes"}};

constexpr HelpExample kEndPods[] = {
    {"sudo spillway end-pods /var/lib/spillway", "End what a stopped `spillway up` has left running"},
    {"sudo spillway end-pods /var/lib/spillway/nodes", "The same for `spillway agent`"},
    {"sudo spillway end-pods ./data-a ./data-b", "For several directories"}};

constexpr HelpExample kSimulateCalls[] = {
    {"spillway simulate zone-outage", "A built-in scenario: a zone goes silent for ten minutes"},
    {"spillway simulate zone-outage --brakes on --report outage.html", "With brakes, and a report as a web page"},
    {"spillway simulate all --seed 7", "All built-in scenarios"}};

constexpr HelpExample kAdvise[] = {
    {"spillway advise zone-outage --brakes on,off", "Compare the future with and without brakes"},
    {"spillway advise n1.recording --memory-available 100Mi,500Mi,5%", "Which eviction threshold loses fewest pods"},
    {"spillway advise zone-outage --brakes on,off --seeds 10 -o json", "Over ten seeds, for a program"}};

constexpr HelpExample kSwarm[] = {{"spillway swarm", "Twenty random seeds"},
                                  {"spillway swarm --seeds 1..200 --jobs 0", "Two hundred seeds on all processors"},
                                  {"spillway swarm --seed 17", "One seed again, with the log of all engines"}};

constexpr HelpExample kRecord[] = {
    {"spillway record n1 --output-file n1.recording", "The inputs of a node's evictions"},
    {"spillway record controller -o controllers.recording", "Those of the controllers"},
    {"spillway record n1 --list", "Only list the kept copies"}};

constexpr HelpExample kReplay[] = {
    {"spillway replay n1.recording", "The decisions of that time"},
    {"spillway replay n1.recording --config other.yaml", "Decisions of another configuration"},
    {"spillway replay n1.recording -o json", "The same for a program"}};

constexpr HelpExample kLint[] = {
    {"spillway lint /var/lib/kubelet/config.yaml", "Check the configuration of a node"},
    {"spillway lint --for kubelet --version 1.32..1.36 kubelet.yaml", "List the changes that an upgrade brings"},
    {"kubectl get --raw /api/v1/nodes/n1/proxy/configz | spillway lint --for kubelet -",
     "Check the configuration of a running kubelet"}};

constexpr HelpExample kImages[] = {{"sudo spillway images list", "Images on this machine"},
                                   {"sudo spillway images import web.tar", "Load an archive of `docker save`"},
                                   {"sudo spillway images prune", "Remove images that no container uses"}};

constexpr HelpExample kStore[] = {{"sudo spillway store backup --to today.backup", "Copy the store while it is in use"},
                                  {"sudo spillway store check", "Verify every page and object"},
                                  {"sudo spillway store restore --from today.backup", "Go back; no server may run"}};

constexpr HelpExample kCompletion[] = {{"source <(spillway completion bash)", "In this shell"},
                                       {"spillway completion fish > ~/.config/fish/completions/spillway.fish", "Fish"},
                                       {"spillway completion zsh > _spillway", "Zsh, in a directory of $fpath"}};

constexpr HelpTopic kTopics[] = {
    {"demo", kFirst, kDemo, {}},
    {"up", kFirst, kUp, kUpFlags},
    {"explain", kFirst, kExplain, {}},
    {"doctor", kFirst, kDoctor, {}},
    {"top", kShow, kTop, {}},
    {"watch", kShow, kWatch, {}},
    {"zones", kShow, kZones, {}},
    {"dashboard", kShow, kDashboard, {}},
    {"agent", kRun, kAgent, kAgentFlags},
    {"apiserver", kRun, kApiserver, kApiserverFlags},
    {"controller", kRun, kController, kControllerFlags},
    {"scheduler", kRun, kScheduler, kSchedulerFlags},
    {"proxy", kRun, kProxy, kProxyFlags},
    {"dns", kRun, kDns, {}},
    {"hold", kAct, kHold, {}},
    {"resume", kAct, kResume, {}},
    {"images", kAct, kImages, {}},
    {"images import", {}, kImages, {}},
    {"images list", {}, kImages, {}},
    {"images pull", {}, kImages, {}},
    {"images prune", {}, kImages, {}},
    {"end-pods", kAct, kEndPods, {}},
    {"stress", kAct, kStress, {}},
    {"simulate", kSimulate, kSimulateCalls, {}},
    {"advise", kSimulate, kAdvise, {}},
    {"record", kSimulate, kRecord, {}},
    {"replay", kSimulate, kReplay, {}},
    {"swarm", kSimulate, kSwarm, {}},
    {"hollow", kSimulate, kHollow, {}},
    {"lint", kKeep, kLint, {}},
    {"store", kKeep, kStore, {}},
    {"store backup", {}, kStore, {}},
    {"store restore", {}, kStore, {}},
    {"store check", {}, kStore, {}},
    {"store defrag", {}, kStore, {}},
    {"store copy", {}, kStore, {}},
    {"completion", kKeep, kCompletion, {}},
};

}  // namespace

std::span<const HelpTopic> help_topics() {
  return kTopics;
}

const HelpTopic* find_help_topic(std::string_view command) {
  const auto* const found = std::ranges::find(kTopics, command, &HelpTopic::command);
  return found == std::end(kTopics) ? nullptr : found;
}

std::string exit_codes_text() {
  return R"(Exit codes have the same meaning in every command.

  0        Done, and nothing is wrong. Also: ended by Ctrl-C where a command runs until then
  1        Not done: no answer, no permission, or an error while it ran
  2        The command line is wrong, or a file that it names is wrong or missing
  3        Done, and the answer is negative: a problem was found (doctor, lint, store check, demo),
           an expectation failed (simulate), a decision differs (replay),
           or the object does not exist (explain, top)
  4        Done, with warnings only (doctor, lint)
  5        The program contradicts itself: a property of the simulator was violated (simulate,
           advise, swarm), or a recording gives other decisions than then (replay). Report it
  128 + N  Ended by signal N; 130 is Ctrl-C
)";
}

}  // namespace spillway::cli
