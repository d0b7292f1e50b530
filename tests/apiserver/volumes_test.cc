// PersistentVolumes, PersistentVolumeClaims, StorageClasses and VolumeAttributesClasses: what becomes of a write, in
// the words of Kubernetes' API server.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr const char* kClaims = "/api/v1/namespaces/default/persistentvolumeclaims";
constexpr const char* kVolumes = "/api/v1/persistentvolumes";
constexpr const char* kClasses = "/apis/storage.k8s.io/v1/storageclasses";

std::string claim(const std::string& name, const std::string& more = {}) {
  return R"({"metadata":{"name":")" + name +
         R"("},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}})" + more + "}}";
}

std::string volume(const std::string& name, const std::string& source, const std::string& more = {}) {
  return R"({"metadata":{"name":")" + name +
         R"("},"spec":{"capacity":{"storage":"5Gi"},"accessModes":["ReadWriteOnce","ReadOnlyMany"],)" + source + more +
         "}}";
}

std::string storage_class(const std::string& name, const std::string& metadata, const std::string& more = {}) {
  return R"({"metadata":{"name":")" + name + "\"" + metadata + R"(},"provisioner":"kubernetes.io/no-provisioner")" +
         more + "}";
}

constexpr const char* kHostPath = R"("hostPath":{"path":"/srv/a"})";
constexpr const char* kDefault = R"(,"annotations":{"storageclass.kubernetes.io/is-default-class":"true"})";

std::string message_of(const Answer& answer) {
  return answer.string_at({"message"});
}

TEST(PersistentVolumes, AreBornPendingAndProtected) {
  TestServer server;
  const Answer made = server.post(kVolumes, volume("v", kHostPath));
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.string_at({"status", "phase"}), "Pending");
  EXPECT_NE(made.body.at({"status", "lastPhaseTransitionTime"}), nullptr);
  EXPECT_EQ(made.string_at({"spec", "persistentVolumeReclaimPolicy"}), "Retain");
  EXPECT_EQ(made.string_at({"spec", "volumeMode"}), "Filesystem");
  EXPECT_EQ(made.string_at({"spec", "hostPath", "type"}), "");
  EXPECT_EQ(*made.body.at({"metadata", "finalizers"}), Json::array({"kubernetes.io/pv-protection"}));
  server.remove(std::string(kVolumes) + "/v");
  const Answer kept = server.get(std::string(kVolumes) + "/v");
  ASSERT_EQ(kept.code, 200);
  EXPECT_NE(kept.body.at({"metadata", "deletionTimestamp"}), nullptr);
}

TEST(PersistentVolumes, AreValidated) {
  TestServer server;
  const auto why = [&](const std::string& source, const std::string& more = {}) {
    return message_of(server.post(kVolumes, volume("v", source, more)));
  };
  EXPECT_EQ(why(R"("mountOptions":["ro"])"),
            "PersistentVolume \"v\" is invalid: spec: Required value: must specify a volume type");
  EXPECT_EQ(why(std::string(kHostPath) + R"(,"nfs":{"server":"s","path":"/"})"),
            "PersistentVolume \"v\" is invalid: spec.nfs: Forbidden: may not specify more than 1 volume type");
  EXPECT_EQ(
      why(R"("local":{"path":"/mnt"})"),
      "PersistentVolume \"v\" is invalid: spec.nodeAffinity: Required value: Local volume requires node affinity");
  EXPECT_EQ(
      why(R"("local":{"path":"/mnt/../etc"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{}]}})"),
      "PersistentVolume \"v\" is invalid: spec.local.path: Invalid value: \"/mnt/../etc\": must not contain '..'");
  EXPECT_EQ(
      why(R"("hostPath":{"path":"/"},"persistentVolumeReclaimPolicy":"Recycle")"),
      "PersistentVolume \"v\" is invalid: spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a "
      "hostPath mount of '/'");
  EXPECT_EQ(why(kHostPath, R"(,"persistentVolumeReclaimPolicy":"Burn")"),
            "PersistentVolume \"v\" is invalid: spec.persistentVolumeReclaimPolicy: Unsupported value: \"Burn\": "
            "supported values: \"Delete\", \"Recycle\", \"Retain\"");
  const Answer no_size = server.post(
      kVolumes, R"({"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/a"}}})");
  EXPECT_EQ(no_size.code, 422) << no_size.text;
}

TEST(PersistentVolumes, KeepTheirSource) {
  TestServer server;
  ASSERT_EQ(server.post(kVolumes, volume("v", kHostPath)).code, 201);
  const std::string path = std::string(kVolumes) + "/v";
  const Answer moved = server.merge(path, R"({"spec":{"hostPath":{"path":"/etc"}}})");
  EXPECT_EQ(moved.code, 422);
  EXPECT_EQ(message_of(moved),
            "PersistentVolume \"v\" is invalid: spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is "
            "immutable after creation");
  EXPECT_EQ(server.merge(path, R"({"spec":{"volumeMode":"Block"}})").code, 422);
  EXPECT_EQ(server.merge(path, R"({"spec":{"persistentVolumeReclaimPolicy":"Delete"}})").code, 200);
  EXPECT_EQ(server.merge(path, R"({"spec":{"claimRef":{"namespace":"default","name":"c"}}})").code, 200);
}

TEST(PersistentVolumes, OfTypesThatNoNodeMountsAreStoredWithAWarning) {
  TestServer server;
  const Answer made = server.post(kVolumes, volume("v", R"("nfs":{"server":"s","path":"/"})"));
  ASSERT_EQ(made.code, 201) << made.text;
  const bool warned = std::ranges::any_of(
      made.headers, [](const auto& header) { return header.second.find("of type nfs, wait") != std::string::npos; });
  EXPECT_TRUE(warned);
}

TEST(Claims, GetTheNewestDefaultClass) {
  TestServer server;
  ASSERT_EQ(server.post(kClasses, storage_class("old", kDefault)).code, 201);
  server.advance(seconds(2));
  ASSERT_EQ(server.post(kClasses, storage_class("new", kDefault)).code, 201);
  ASSERT_EQ(server.post(kClasses, storage_class("other", "")).code, 201);
  const Answer made = server.post(kClaims, claim("c"));
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.string_at({"spec", "storageClassName"}), "new");
  EXPECT_EQ(made.string_at({"status", "phase"}), "Pending");
  EXPECT_EQ(*made.body.at({"metadata", "finalizers"}), Json::array({"kubernetes.io/pvc-protection"}));
  EXPECT_EQ(server.post(kClaims, claim("none", R"(,"storageClassName":"")")).string_at({"spec", "storageClassName"}),
            "");
}

TEST(Claims, DoNotChangeWhatTheyAskFor) {
  TestServer server;
  ASSERT_EQ(server.post(kClaims, claim("c")).code, 201);
  const std::string path = std::string(kClaims) + "/c";
  const Answer changed = server.merge(path, R"({"spec":{"accessModes":["ReadWriteMany"]}})");
  EXPECT_EQ(message_of(changed),
            "PersistentVolumeClaim \"c\" is invalid: spec: Forbidden: spec is immutable after creation except "
            "resources.requests and volumeAttributesClassName for bound claims");
  EXPECT_EQ(message_of(server.merge(path, R"({"spec":{"resources":{"requests":{"storage":"2Gi"}}}})")),
            "persistentvolumeclaims \"c\" is forbidden: Only bound persistent volume claims can be expanded");
  EXPECT_EQ(server.merge(path, R"({"spec":{"volumeName":"v"}})").code, 200);
  EXPECT_EQ(server.merge(path, R"({"spec":{"volumeName":"w"}})").code, 422);
  EXPECT_EQ(server.merge(path, R"({"spec":{"storageClassName":"late"}})").code, 200);
  EXPECT_EQ(server.merge(path, R"({"spec":{"storageClassName":"later"}})").code, 422);
  EXPECT_EQ(server.merge(path + "/status", R"({"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}})").code, 200);
  EXPECT_EQ(message_of(server.merge(path, R"({"spec":{"resources":{"requests":{"storage":"2Gi"}}}})")),
            "persistentvolumeclaims \"c\" is forbidden: only dynamically provisioned pvc can be resized and the "
            "storageclass that provisions the pvc must support resize");
  EXPECT_EQ(server.merge(path, R"({"spec":{"resources":{"requests":{"storage":"1Mi"}}}})").code, 422);
}

TEST(Claims, AreValidated) {
  TestServer server;
  EXPECT_EQ(message_of(server.post(kClaims, R"({"metadata":{"name":"c"},"spec":{}})")),
            "PersistentVolumeClaim \"c\" is invalid: [spec.accessModes: Required value: at least 1 access mode is "
            "required, spec.resources[storage]: Required value]");
}

TEST(StorageClasses, HaveDefaultsAndKeepThem) {
  TestServer server;
  const Answer made = server.post(kClasses, storage_class("s", ""));
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.string_at({"reclaimPolicy"}), "Delete");
  EXPECT_EQ(made.string_at({"volumeBindingMode"}), "Immediate");
  const std::string path = std::string(kClasses) + "/s";
  EXPECT_EQ(
      message_of(server.merge(path, R"({"reclaimPolicy":"Retain"})")),
      "StorageClass.storage.k8s.io \"s\" is invalid: reclaimPolicy: Invalid value: \"Retain\": field is immutable");
  EXPECT_EQ(server.merge(path, R"({"volumeBindingMode":"WaitForFirstConsumer"})").code, 422);
  EXPECT_EQ(server.merge(path, R"({"metadata":{"labels":{"a":"b"}}})").code, 200);
  EXPECT_EQ(server.post(kClasses, storage_class("t", "", R"(,"volumeBindingMode":"Soon")")).code, 422);
}

constexpr const char* kAttributes = "/apis/storage.k8s.io/v1/volumeattributesclasses";

std::string attributes_class(const std::string& name, const std::string& members) {
  return R"({"metadata":{"name":")" + name + "\"}" + members + "}";
}

TEST(VolumeAttributesClasses, NameADriverAndParameters) {
  TestServer server;
  const auto why = [&](const std::string& members) {
    return message_of(server.post(kAttributes, attributes_class("a", members)));
  };
  const std::string invalid = "VolumeAttributesClass.storage.k8s.io \"a\" is invalid: ";
  EXPECT_EQ(why(R"(,"parameters":{"iops":"100"})"), invalid + "driverName: Required value");
  EXPECT_EQ(why(R"(,"driverName":"csi.example.com")"),
            invalid + "parameters: Required value: must contain at least one key/value pair");
  EXPECT_EQ(why(R"(,"driverName":"csi.example.com","parameters":{})"),
            invalid + "parameters: Required value: must contain at least one key/value pair");
  EXPECT_EQ(why(R"(,"driverName":"csi.example.com","parameters":{"":"1"})"),
            invalid + "parameters: Invalid value: \"\": field can not be empty.");
  EXPECT_NE(why(R"(,"driverName":"a b","parameters":{"iops":"100"})").find("driverName: Invalid value: \"a b\""),
            std::string::npos);
  EXPECT_EQ(why(R"(,"driverName":"CSI.example.com","parameters":{"iops":"100"})"), "");
  EXPECT_EQ(server.get(std::string(kAttributes) + "/a").string_at({"driverName"}), "CSI.example.com");
}

TEST(VolumeAttributesClasses, KeepTheirDriverAndParameters) {
  TestServer server;
  const std::string members = R"(,"driverName":"csi.example.com","parameters":{"iops":"100"})";
  ASSERT_EQ(server.post(kAttributes, attributes_class("fast", members)).code, 201);
  const std::string path = std::string(kAttributes) + "/fast";
  const std::string invalid = "VolumeAttributesClass.storage.k8s.io \"fast\" is invalid: ";
  EXPECT_EQ(message_of(server.merge(path, R"({"parameters":{"iops":"200"}})")),
            invalid + "parameters: Forbidden: updates to parameters are forbidden.");
  EXPECT_EQ(message_of(server.merge(path, R"({"driverName":"other.example.com"})")),
            invalid + "driverName: Forbidden: updates to driverName are forbidden.");
  EXPECT_EQ(server.merge(path, R"({"metadata":{"labels":{"a":"b"}}})").code, 200);
  EXPECT_EQ(server.put(std::string(kAttributes) + "/none", attributes_class("none", members)).code, 404);
}

/// A claim that a volume was bound to.
void bind_claim(TestServer& server, const std::string& path, const std::string& more = {}) {
  ASSERT_EQ(server.merge(path + "/status", R"({"status":{"phase":"Bound")" + more + "}}").code, 200);
}

TEST(VolumeAttributesClasses, AreChangedByBoundClaims) {
  TestServer server;
  const std::string path = std::string(kClaims) + "/c";
  const Answer made = server.post(kClaims, claim("c", R"(,"volumeAttributesClassName":"slow")"));
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.string_at({"spec", "volumeAttributesClassName"}), "slow");
  const auto set = [&](const std::string& value) {
    return server.merge(path, R"({"spec":{"volumeAttributesClassName":)" + value + "}}");
  };
  EXPECT_EQ(message_of(set(R"("fast")")),
            "PersistentVolumeClaim \"c\" is invalid: spec: Forbidden: spec is immutable after creation except "
            "resources.requests and volumeAttributesClassName for bound claims");
  bind_claim(server, path);
  EXPECT_EQ(set(R"("fast")").string_at({"spec", "volumeAttributesClassName"}), "fast");
  EXPECT_EQ(message_of(set(R"("F_")"))
                .find("PersistentVolumeClaim \"c\" is invalid: spec.volumeAttributesClassName: "
                      "Invalid value: \"F_\""),
            0U);
  EXPECT_EQ(set("null").code, 200) << "none was applied";
  EXPECT_EQ(set(R"("fast")").code, 200);
  bind_claim(server, path, R"(,"currentVolumeAttributesClassName":"fast")");
  EXPECT_EQ(message_of(set("null")),
            "PersistentVolumeClaim \"c\" is invalid: spec.volumeAttributesClassName: Forbidden: update from non-nil "
            "value to nil is forbidden");
  EXPECT_EQ(set(R"("slow")").code, 200);
}

TEST(VolumeAttributesClasses, AreOfVolumesOfDrivers) {
  TestServer server;
  const std::string invalid = "PersistentVolume \"v\" is invalid: ";
  EXPECT_EQ(message_of(server.post(kVolumes, volume("v", kHostPath, R"(,"volumeAttributesClassName":"fast")"))),
            invalid + "spec.csi: Required value: has to be specified when using volumeAttributesClassName");
  const std::string driver = R"("csi":{"driver":"csi.example.com","volumeHandle":"h"})";
  EXPECT_EQ(message_of(server.post(kVolumes, volume("v", driver, R"(,"volumeAttributesClassName":"")"))),
            invalid + "spec.volumeAttributesClassName: Required value: an empty string is disallowed");
  ASSERT_EQ(server.post(kVolumes, volume("v", driver, R"(,"volumeAttributesClassName":"fast")")).code, 201);
  const std::string path = std::string(kVolumes) + "/v";
  EXPECT_EQ(server.merge(path, R"({"spec":{"volumeAttributesClassName":"slow"}})").code, 200);
  EXPECT_EQ(message_of(server.merge(path, R"({"spec":{"volumeAttributesClassName":null}})")),
            invalid + "spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden");
}

std::vector<std::string> first_row(TestServer& server, const std::string& path) {
  const Answer table = server.get(path, "application/json;as=Table;v=v1;g=meta.k8s.io");
  std::vector<std::string> cells;
  for (const Json& cell : *table.body.find("rows")->if_array()->front().find("cells")->if_array()) {
    cells.push_back(cell.is_string() ? std::string(cell.string_at({})) : api::to_text(cell));
  }
  return cells;
}

TEST(VolumeTables, ShowWhatKubectlPrints) {
  TestServer server;
  ASSERT_EQ(server.post(kClasses, storage_class("s", kDefault)).code, 201);
  ASSERT_EQ(server
                .post(kVolumes, volume("v", kHostPath,
                                       R"(,"storageClassName":"s","claimRef":{"namespace":"default","name":"c"})"))
                .code,
            201);
  ASSERT_EQ(server.post(kClaims, claim("c", R"(,"volumeName":"v")")).code, 201);
  ASSERT_EQ(
      server
          .merge(
              std::string(kClaims) + "/c/status",
              R"({"status":{"phase":"Bound","accessModes":["ReadOnlyMany","ReadWriteOnce"],"capacity":{"storage":"5Gi"}}})")
          .code,
      200);
  EXPECT_EQ(first_row(server, kVolumes),
            (std::vector<std::string>{"v", "5Gi", "RWO,ROX", "Retain", "Pending", "default/c", "s", "<unset>", "", "0s",
                                      "Filesystem"}));
  EXPECT_EQ(first_row(server, kClaims),
            (std::vector<std::string>{"c", "Bound", "v", "5Gi", "RWO,ROX", "s", "<unset>", "0s", "Filesystem"}));
  EXPECT_EQ(first_row(server, kClasses), (std::vector<std::string>{"s (default)", "kubernetes.io/no-provisioner",
                                                                   "Delete", "Immediate", "false", "0s"}));
}

TEST(VolumeTables, ShowDrivers) {
  const std::string drivers = "/apis/storage.k8s.io/v1/csidrivers";
  TestServer server;
  ASSERT_EQ(server.post(drivers, R"({"metadata":{"name":"a.example.com"}})").code, 201);
  EXPECT_EQ(first_row(server, drivers), (std::vector<std::string>{"a.example.com", "true", "false", "false", "<unset>",
                                                                  "false", "Persistent", "0s"}));
  ASSERT_EQ(server.remove(drivers + "/a.example.com").code, 200);
  ASSERT_EQ(server
                .post(drivers, R"({"metadata":{"name":"b.example.com"},"spec":{"attachRequired":false,)"
                               R"("podInfoOnMount":true,"storageCapacity":true,"requiresRepublish":true,)"
                               R"("tokenRequests":[{"audience":"x"},{"audience":"y"}],)"
                               R"("volumeLifecycleModes":["Ephemeral","Persistent"]}})")
                .code,
            201);
  EXPECT_EQ(first_row(server, drivers), (std::vector<std::string>{"b.example.com", "false", "true", "true", "x,y",
                                                                  "true", "Ephemeral,Persistent", "0s"}));
}

TEST(CsiDrivers, UpdateWhatCanBeAllocatedAndTakeTokensAsSecrets) {
  const std::string drivers = "/apis/storage.k8s.io/v1/csidrivers";
  TestServer server;
  const auto make = [&](const std::string& name, const std::string& spec) {
    return server.post(drivers, R"({"metadata":{"name":")" + name + R"("},"spec":)" + spec + "}");
  };
  EXPECT_EQ(
      message_of(make("a", R"({"nodeAllocatableUpdatePeriodSeconds":9})")),
      "CSIDriver.storage.k8s.io \"a\" is invalid: spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must "
      "be greater than or equal to 10 seconds");
  const Answer refused = make("a", R"({"serviceAccountTokenInSecrets":true})");
  EXPECT_EQ(refused.code, 422) << "there are no tokens";
  const Answer made = make("a", R"({"nodeAllocatableUpdatePeriodSeconds":10,"serviceAccountTokenInSecrets":true,)"
                                R"("tokenRequests":[{"audience":"x"}]})");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.body.at({"spec", "nodeAllocatableUpdatePeriodSeconds"})->if_int64(), 10);
  EXPECT_EQ(made.body.at({"spec", "serviceAccountTokenInSecrets"})->if_bool(), true);
  EXPECT_EQ(make("b", "{}").body.at({"spec", "serviceAccountTokenInSecrets"}), nullptr);
}

TEST(VolumeAttributesClasses, HaveColumns) {
  TestServer server;
  ASSERT_EQ(
      server
          .post(kAttributes, attributes_class("fast", R"(,"driverName":"csi.example.com","parameters":{"iops":"100"})"))
          .code,
      201);
  EXPECT_EQ(first_row(server, kAttributes), (std::vector<std::string>{"fast", "csi.example.com", "0s"}));
}

}  // namespace

}  // namespace spillway::apiserver
