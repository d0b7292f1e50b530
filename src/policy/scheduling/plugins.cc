#include "policy/scheduling/plugins.h"

namespace spillway::scheduling {

std::string_view to_string(Filter filter) {
  switch (filter) {
    case Filter::kNodeUnschedulable:
      return "NodeUnschedulable";
    case Filter::kNodeName:
      return "NodeName";
    case Filter::kTaintToleration:
      return "TaintToleration";
    case Filter::kNodeAffinity:
      return "NodeAffinity";
    case Filter::kNodePorts:
      return "NodePorts";
    case Filter::kNodeResourcesFit:
      return "NodeResourcesFit";
    case Filter::kVolumeRestrictions:
      return "VolumeRestrictions";
    case Filter::kNodeVolumeLimits:
      return "NodeVolumeLimits";
    case Filter::kVolumeBinding:
      return "VolumeBinding";
    case Filter::kVolumeZone:
      return "VolumeZone";
    case Filter::kPodTopologySpread:
      return "PodTopologySpread";
    case Filter::kInterPodAffinity:
      return "InterPodAffinity";
    case Filter::kNodeDeclaredFeatures:
      return "NodeDeclaredFeatures";
    case Filter::kCheckNodeCondition:
      return "CheckNodeCondition";
    case Filter::kCheckNodeMemoryPressure:
      return "CheckNodeMemoryPressure";
    case Filter::kCheckNodePidPressure:
      return "CheckNodePIDPressure";
    case Filter::kCheckNodeDiskPressure:
      return "CheckNodeDiskPressure";
    case Filter::kExtender:
      return "Extender";
  }
  return {};
}

}  // namespace spillway::scheduling
