// Sentences for the codes of an outlook.
#include "base/utf8.h"
#include "cli/text/outlook_text.h"
#include "cli/text/reason_sentence.h"
#include "cli/text/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace spillway::cli {
namespace {

using outlook::Code;
using policy::Fact;

struct Sentence {
  Code code;
  std::string_view text;
};

using enum Code;

/// Sentences in the order of the enumerators.
constexpr auto kSentences = std::to_array<Sentence>({
    {kBeingDeleted, "it is being deleted"},
    {kControllerSays, "its controller says that {condition} is {status} ({reason}): {message}"},
    {kNotRead, "its {what} could not be read, so this answer is incomplete"},

    {kJobComplete, "it is complete: {succeeded:pod has|pods have} succeeded[, {took_seconds} after its start]"},
    {kJobFailed, "it has failed ({reason})[: {message}]"},
    {kJobEnding, "it is about to end ({reason})[: {message}]"},
    {kJobManagedElsewhere, "{manager} manages it (spec.managedBy), not the job controller"},
    {kJobSuspended, "it is suspended (spec.suspend): it has no pods until it is resumed"},
    {kJobUnseen, "the job controller has not synced it yet; does it run?"},
    {kJobNoParallelism, "its parallelism is 0: no pod is made"},
    {kJobPodsRefused, "its pods are refused[, last at {last_at}]: {message}"},
    {kJobBackOff,
     "the next pod is created in {due_seconds}, at {due_at}: [{failures_in_a_row:failure|failures} in a row, ]the wait "
     "doubles with each"},
    {kJobPodsPending, "none of its pods runs, {pods:waits|wait}; {pod}: {why}"},
    {kJobRuns, "{running:pod runs|pods run}"},
    {kJobPodsLeave, "{pods:pod is|pods are} being deleted: replacements are made when they are gone"},
    {kJobMakesPods, "the job controller makes {pods:pod|pods} now"},
    {kJobRests, "it has no pod that runs, and none is due"},
    {kJobProgress,
     "{succeeded}[ of {completions}] succeeded[, {running} running][, {pending} pending], {failed} failed[ "
     "(backoffLimit {backoff_limit})][ (backoffLimitPerIndex {backoff_limit_per_index})]"},
    {kJobIndexes, "indexes that are done: {completed}[; that have failed: {failed}]"},
    {kJobFailureRule, "a rule of podFailurePolicy has matched {pods:failure|failures}: {action}"},
    {kJobDeadline, "its activeDeadlineSeconds are over in {due_seconds}, at {due_at}: it fails then"},
    {kJobLeavesAt, "it is deleted in {due_seconds}, at {due_at} (ttlSecondsAfterFinished)"},
    {kJobLeavesAfter, "it is deleted {ttl_seconds} after its end (ttlSecondsAfterFinished)"},
    {kJobKeptByHistory, "it stays as long as the history of cron job {cron_job} has room for it"},
    {kJobStays, "it stays until it is deleted: ttlSecondsAfterFinished is not set"},

    {kCronUnknownZone, "nothing starts: {message}"},
    {kCronUnreadable, "nothing starts: {message}"},
    {kCronSuspended,
     "it is suspended (spec.suspend): nothing starts[; by its schedule the next run would be at {next_at}]"},
    {kCronForbidden,
     "the run[ of {due_at}] does not start before the last one[, {job},] has ended (concurrencyPolicy Forbid)"},
    {kCronMissed,
     "the run of {due_at} is lost: nothing started it within its startingDeadlineSeconds, {deadline_seconds}"},
    {kCronDue,
     "the run of {due_at} has been due for {late_seconds}: its controller starts it now; if not, does it run?"},
    {kCronNext, "the next run is in {next_seconds}, at {next_at}"},
    {kCronNever, "no time of the next five years fits its schedule, {schedule}"},
    {kCronManyMissed, "more than 100 runs were missed[ since {since_at}]: only the last of them is made up for"},
    {kCronUnsupportedZone, "its schedule names a time zone, which is for spec.timeZone"},
    {kCronLast, "the last run was at {last_at}, as job {job}[, which is {state}]"},
    {kCronNeverRan, "it has never run"},
    {kCronLastSuccess, "the last success ended at {success_at}"},
    {kCronPolicy,
     "schedule {schedule}[ in {time_zone}], concurrencyPolicy {concurrency_policy}[, startingDeadlineSeconds "
     "{deadline_seconds}]"},
    {kCronHistory,
     "complete jobs kept: {complete_max} at most[, {complete} there]; failed ones: {failed_max} at most[, {failed} "
     "there][; {leaving:goes|go} now]"},

    {kScaleUnread, "the scale of {target} cannot be read: {message}"},
    {kScaleZero, "{target} has 0 replicas: nothing is scaled until it is given one"},
    {kScaleSelector, "nothing is scaled: {message}"},
    {kScaleBlind,
     "it stays at {replicas:replica|replicas}: {failed} of {metrics:metric|metrics} cannot be read ({message})"},
    {kScaleOutOfRange, "it goes from {replicas} to {to:replica|replicas}: the present number is outside its range"},
    {kScaleChanges, "it goes from {replicas} to {to:replica|replicas}[: {why}]"},
    {kScaleStabilized,
     "its metrics propose {proposed:replica|replicas}, and it stays at {replicas}: {recommended} were recommended "
     "within the last {window_seconds}[, so until {until_at} at least]"},
    {kScaleLimited,
     "its metrics propose {proposed:replica|replicas}, and it [goes from {replicas} to {to}][stays at {stays}] "
     "({reason}): {message}"},
    {kScaleSteady, "it stays at {replicas:replica|replicas}: its metrics propose no other number"},
    {kScaleUnknown, "its next step is unknown: {target} is as its controller last reported"},
    {kScaleStanding, "{target} has {replicas:replica|replicas}, {desired} desired, between {min} and {max}"},
    {kScaleTolerance, "a metric within {tolerance_percent}% of its target changes nothing"},
    {kScaleLast, "the last change was at {last_at}"},
    {kScaleWindow,
     "it shrinks no further than the most that was recommended within {down_window_seconds}[, and grows no further "
     "than the least within {up_window_seconds}]"},

    {kServiceExternalName, "it is another name for {external_name}, served by DNS: it has no pods and no address"},
    {kServiceNoSelector,
     "it has no selector: its endpoints are written by hand or by another controller[, {endpoints} now]"},
    {kServiceNoMatch, "no pod answers: no pod of its namespace has the labels {selector}"},
    {kServiceNoneReady, "no pod answers: none of its pods ({pods}) is ready[; {pod}: {why}]"},
    {kServiceDraining, "{pods:pod answers|pods answer}, all of them being deleted: no other pod is ready"},
    {kServiceReady, "connections go to {ready} of its {pods:pod|pods}"},
    {kServiceNotCarried,
     "{ready} of its {pods:pod answers|pods answer}, but no Service proxy of Spillway leads {address} to them ({why}): "
     "use kubectl port-forward svc/{name} 8080:{port}"},
    {kServiceHeadless, "it is headless: DNS gives the addresses of the pods themselves"},
    {kServiceNotReadyPublished, "pods that are not ready count as if they were (publishNotReadyAddresses)"},
    {kServiceLeftOut, "{pods:pod differs|pods differ} in the label {key} alone; it wants {wanted}"},
    {kServicePortMissing,
     "no pod answers at port {port} on {pods} of {ready:ready pod|ready pods}: they have no port named {target}"},
    {kServiceBehind, "its endpoint slices are not up to date ({writes:write|writes} due); does their controller run?"},
    {kServiceSlices, "{slices:endpoint slice|endpoint slices}, {endpoints:endpoint|endpoints}, {ready} ready"},
    {kServiceNoPorts, "it has no ports: it is for DNS alone"},

    {kPodNoImage, "container {container} waits for its image {image} ({reason})[: {message}]"},
    {kPodNoStart, "container {container} cannot be started ({reason})[: {message}]"},
    {kPodOutOfMemory,
     "the kernel killed container {container}: out of memory[, its limit is {limit_bytes}][; last at {ended_at}][, "
     "{restarts:restart|restarts} so far]"},
    {kPodCrashes,
     "container {container} crashes repeatedly: exit code {exit_code}[ ({reason})][: {message}][, last at "
     "{ended_at}][, {restarts:restart|restarts} so far]; it restarts after a growing back-off"},
    {kPodContainerFailed,
     "container {container} ended with exit code {exit_code}[ ({reason})][: {message}][, at {ended_at}]"},
    {kPodPortTaken,
     "port {port} of node {node} belongs to pod {pod}: use another port, or give pods addresses of their own (see "
     "spillway doctor)"},
    {kPodEvicted, "node {node} evicted it[: {message}]"},
    {kPodFailed, "it failed: {why}"},
    {kPodUnschedulable, "no node takes it[: {message}]"},
    {kPodClaim, "it waits for its claim {claim}"},
    {kPodUnready, "it is not ready: {why}"},

    {kWorkloadReady, "{wanted:pod is|pods are} wanted and ready"},
    {kWorkloadZero, "it has 0 replicas: no pod is made until it is scaled up"},
    {kWorkloadNoNode, "no node fits its node selector and tolerations: it has no pod"},
    {kWorkloadWants, "{wanted:pod is|pods are} wanted"},
    {kWorkloadWaits,
     "{ready} of {wanted:pod is|pods are} ready[; {pod} waits for its claim {claim}][; {pod}: {why}][; "
     "{missing:pod|pods} not "
     "made yet]"},
    {kWorkloadOneByOne, "the next pod is made when {pod} is ready (podManagementPolicy OrderedReady)"},

    {kClaimBound, "it is bound to volume {volume}"},
    {kClaimBinding, "[claim {claim}: ]it names volume {volume}, and the volume is not bound to it yet"},
    {kClaimLost, "its volume {volume} does not exist any more, and its data is lost"},
    {kClaimWaits, "[claim {claim}: ]no volume of StorageClass {class} is bound to it yet"},
    {kClaimFirstConsumer,
     "[claim {claim}: ]it waits for a pod with a node (StorageClass {class} has volumeBindingMode "
     "WaitForFirstConsumer)"},
    {kClaimNoClass,
     "[claim {claim}: ]no volume fits, and no StorageClass can make one: it names none, and no class is the default "
     "(docs/volumes.md)"},
    {kClaimClassUnknown, "[claim {claim}: ]its StorageClass {class} does not exist, and no volume of that class fits"},
    {kClaimNoProvisioner,
     "[claim {claim}: ]no volume of StorageClass {class} fits, and that class makes none: create a PersistentVolume"},
    {kClaimProvisioning,
     "[claim {claim}: ]{provisioner} has to make its volume[ on node {node}] (StorageClass {class}); does it run?"},
    {kClaimWarning, "the last warning about it: {message}"},
    {kClaimSize, "it requests {wanted_bytes}[ and has {capacity_bytes}]"},
    {kClaimUnused, "no pod uses it"},

    {kNodeNoStatus, "it has never reported a status: does its agent run?"},
    {kNodeSilent, "its agent does not report[: {message}]"},
    {kNodeNotReady, "it is not ready[: {message}]"},
    {kNodeUnderPressure,
     "it reports {conditions}[ ({signal} {available_bytes} < {threshold_bytes})][ ({signal} {available_inodes} < "
     "{threshold_inodes})][ ({signal} {available_pids} < {threshold_pids})]: it may evict pods, and takes no new ones "
     "without a toleration"},
    {kNodeNear, "{signal} will reach its threshold in {due_seconds}[; {pod} would be evicted first]"},
    {kClusterHeld, "the node lifecycle controllers are held[: {why}]; `spillway resume` ends it"},
});

constexpr bool has_every_sentence() {
  for (std::size_t i = 0; i < kSentences.size(); ++i) {
    if (static_cast<std::size_t>(kSentences[i].code) != i) return false;
  }
  return kSentences.size() == static_cast<std::size_t>(outlook::kLastCode) + 1;
}

static_assert(has_every_sentence());

/// User-written text on one line, without control characters that could move the terminal's cursor.
std::string on_a_line(std::string_view text) {
  std::string line = printable(text);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

/// "2 pods run" of {running:pod runs|pods run}; nullopt: the fact is missing.
std::optional<std::string> value_of(std::string_view placeholder, const std::vector<Fact>& facts) {
  const std::size_t colon = placeholder.find(':');
  const Fact* fact = policy::find_fact(facts, placeholder.substr(0, colon));
  if (fact == nullptr) return std::nullopt;
  const std::string value = on_a_line(value_text(*fact));
  if (colon == std::string_view::npos) return value;
  const std::string_view words = placeholder.substr(colon + 1);
  const std::size_t bar = words.find('|');
  return value + " " + std::string(value == "1" ? words.substr(0, bar) : words.substr(bar + 1));
}

/// The sentence without parts in []; nullopt: a fact is missing.
std::optional<std::string> filled(std::string_view text, const std::vector<Fact>& facts) {
  std::string out;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    out += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find('}', open);
    const auto value = value_of(text.substr(open + 1, close - open - 1), facts);
    if (!value) return std::nullopt;
    out += *value;
    text.remove_prefix(close + 1);
  }
  return out;
}

}  // namespace

std::string fill_in(std::string_view sentence, const std::vector<Fact>& facts) {
  std::string out;
  while (!sentence.empty()) {
    const std::size_t open = sentence.find('[');
    const auto plain = filled(sentence.substr(0, open), facts);
    if (!plain) return {};
    out += *plain;
    if (open == std::string_view::npos) break;
    const std::size_t close = sentence.find(']', open);
    out += filled(sentence.substr(open + 1, close - open - 1), facts).value_or("");
    sentence.remove_prefix(close + 1);
  }
  return out;
}

std::string sentence_of(const outlook::Remark& remark) {
  if (std::string text = fill_in(kSentences.at(static_cast<std::size_t>(remark.code)).text, remark.facts);
      !text.empty()) {
    return text;
  }
  std::string words(outlook::to_string(remark.code));
  std::ranges::replace(words, '-', ' ');
  return remark.facts.empty() ? words : words + ": " + on_a_line(facts_text(remark.facts));
}

}  // namespace spillway::cli
