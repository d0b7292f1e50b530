// VolumeAttachments, CSIStorageCapacities and PodTemplates: what becomes of a write, in the words of Kubernetes' API
// server, and what is shown of them.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

using api::Json;

const std::string kAttachments = "/apis/storage.k8s.io/v1/volumeattachments";
const std::string kCapacities = "/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities";
const std::string kTemplates = "/api/v1/namespaces/default/podtemplates";

std::string attachment(const std::string& source, const std::string& attacher = "csi.a.io",
                       const std::string& node = "n1") {
  return R"({"metadata":{"name":"x"},"spec":{"attacher":")" + attacher + R"(","source":)" + source +
         R"(,"nodeName":")" + node + "\"}}";
}

const std::string kVolume = R"({"persistentVolumeName":"pv"})";

std::string reasons(const Answer& answer) {
  const std::string message = answer.string_at({"message"});
  const std::size_t begin = message.find("is invalid: ");
  return begin == std::string::npos ? message : message.substr(begin + 12);
}

std::string cells_of(TestServer& server, const std::string& collection) {
  const Answer table = server.get(collection, "application/json;as=Table;v=v1;g=meta.k8s.io");
  Json cells = *table.body.find("rows")->if_array()->front().find("cells");
  const Json& last = table.body.find("columnDefinitions")->if_array()->back();
  if (last.string_at({"name"}) == "Age") cells.if_array()->pop_back();
  return to_text(cells);
}

TEST(VolumeAttachments, AreValidated) {
  TestServer server;
  const auto why = [&](const std::string& body) { return reasons(server.post(kAttachments, body)); };
  const std::string one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  EXPECT_EQ(why(attachment("{}")), "spec.source: Required value: " + one);
  EXPECT_EQ(why(attachment(R"({"persistentVolumeName":"pv","inlineVolumeSpec":{}})")),
            "spec.source: Forbidden: " + one);
  EXPECT_EQ(why(attachment(R"({"persistentVolumeName":""})"))
                .find("[spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName, "
                      "spec.source.persistentVolumeName: Invalid value: \"\": a lowercase RFC 1123 subdomain"),
            0U);
  EXPECT_EQ(why(attachment(kVolume, std::string(64, 'a'))), "spec.attacher: Too long: may not be more than 63 bytes");
  EXPECT_EQ(why(attachment(kVolume, "a_b")).find("spec.attacher: Invalid value: \"a_b\": a lowercase RFC 1123"), 0U);
  EXPECT_EQ(why(attachment(kVolume, "")), "spec.attacher: Required value");
  EXPECT_EQ(why(attachment(kVolume, "a", "")).find("spec.nodeName: Invalid value: \"\": a lowercase RFC 1123"), 0U);
  EXPECT_EQ(server.post(kAttachments, attachment(kVolume, "CSI.A.io")).code, 201);
}

TEST(VolumeAttachments, OfAVolumeThatIsNoObjectSayLessAboutIt) {
  TestServer server;
  const auto why = [&](const std::string& more) {
    return reasons(
        server.post(kAttachments, attachment(R"({"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"])" + more + "}}")));
  };
  const std::string csi = R"(,"csi":{"driver":"csi.a.io","volumeHandle":"h"})";
  const std::string at = "spec.source.inlineVolumeSpec";
  EXPECT_EQ(why(""), "[" + at + ".csi: Required value: has to be specified in the context of inline volumes, " + at +
                         ": Required value: must specify a volume type]");
  const std::string never = ": Forbidden: may not be specified in the context of inline volumes";
  EXPECT_EQ(why(csi + R"(,"claimRef":{"name":"c"})"), at + ".claimRef" + never);
  EXPECT_EQ(why(csi + R"(,"capacity":{"storage":"1Gi"})"), at + ".capacity" + never);
  EXPECT_EQ(why(csi + R"(,"nodeAffinity":{"required":{"nodeSelectorTerms":[]}})"), at + ".nodeAffinity" + never);
  EXPECT_EQ(why(csi + R"(,"storageClassName":"fast")"), at + ".storageClassName" + never);
  EXPECT_EQ(why(csi + R"(,"persistentVolumeReclaimPolicy":"Delete")"),
            at + ".persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes");
  EXPECT_EQ(why(csi + R"(,"volumeMode":"Block")"),
            at + ".volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline "
                 "volumes");
  EXPECT_EQ(
      server
          .post(kAttachments, attachment(R"({"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"])" + csi +
                                         R"(,"persistentVolumeReclaimPolicy":"Retain","volumeMode":"Filesystem"}})"))
          .code,
      201);
}

TEST(VolumeAttachments, KeepWhatIsAttachedWhere) {
  TestServer server;
  const Answer made = server.post(
      kAttachments, R"({"metadata":{"name":"x"},"spec":{"attacher":"a","source":{"persistentVolumeName":"pv"},)"
                    R"("nodeName":"n1"},"status":{"attached":true}})");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.body.at({"metadata", "generation"}), nullptr);
  EXPECT_EQ(to_text(*made.body.find("status")), R"({"attached":false})");
  const Answer moved = server.merge(kAttachments + "/x", R"({"spec":{"nodeName":"n2"}})");
  EXPECT_EQ(moved.code, 422);
  EXPECT_EQ(reasons(moved).find("spec: Invalid value: {"), 0U);
  EXPECT_TRUE(reasons(moved).ends_with(": field is immutable"));
  const Answer blind = server.put(kAttachments + "/x", attachment(kVolume));
  EXPECT_EQ(reasons(blind), "metadata.resourceVersion: Invalid value: 0: must be specified for an update");
}

TEST(VolumeAttachments, HaveAStatusThatTouchesNothingElse) {
  TestServer server;
  ASSERT_EQ(server.post(kAttachments, attachment(kVolume)).code, 201);
  const Answer said =
      server.merge(kAttachments + "/x/status",
                   R"({"metadata":{"labels":{"a":"b"},"finalizers":["a.io/b"]},"spec":{"nodeName":"n2"},)"
                   R"("status":{"attached":true,"attachmentMetadata":{"k":"v"}}})");
  ASSERT_EQ(said.code, 200) << said.text;
  EXPECT_EQ(said.body.at({"metadata", "labels"}), nullptr);
  EXPECT_EQ(said.body.at({"metadata", "finalizers"}), nullptr);
  EXPECT_EQ(said.string_at({"spec", "nodeName"}), "n1");
  EXPECT_EQ(cells_of(server, kAttachments), R"(["x","csi.a.io","pv","n1",true])");
  const auto error = [&](std::size_t bytes) {
    return server.merge(kAttachments + "/x/status",
                        R"({"status":{"attachError":{"message":")" + std::string(bytes, 'e') + R"("}}})");
  };
  EXPECT_EQ(error(1024).code, 200);
  EXPECT_EQ(reasons(error(1025)), "status.attachError.message: Too long: may not be more than 1024 bytes");
  const Answer large = server.merge(kAttachments + "/x/status", R"({"status":{"attachmentMetadata":{"k":")" +
                                                                    std::string(256U << 10U, 'v') + R"("}}})");
  EXPECT_EQ(reasons(large), "status.attachmentMetadata: Too long: may not be more than 262144 bytes");
  EXPECT_NE(server.at_rest("/registry/volumeattachments/x"), "");
}

std::string capacity(const std::string& more) {
  return R"({"metadata":{"name":"x"},"storageClassName":"fast")" + more + "}";
}

TEST(StorageCapacities, AreValidated) {
  TestServer server;
  const auto why = [&](const std::string& body) { return reasons(server.post(kCapacities, body)); };
  EXPECT_EQ(why(R"({"metadata":{"name":"x"}})").find("storageClassName: Invalid value: \"\": a lowercase RFC 1123"),
            0U);
  EXPECT_EQ(why(capacity(R"(,"capacity":"-1")")),
            "capacity: Invalid value: \"-1\": must be greater than or equal to 0");
  EXPECT_EQ(why(capacity(R"(,"nodeTopology":{"matchExpressions":[{"key":"a","operator":"Near"}]})")),
            "nodeTopology.matchExpressions[0].operator: Invalid value: \"Near\": not a valid selector operator");
  // Each cause is reported twice, as by upstream.
  const Answer twice = server.post(kCapacities, capacity(R"(,"capacity":"-1")"));
  EXPECT_EQ(causes_of(twice.body).if_array()->size(), 2U);
}

TEST(StorageCapacities, KeepWhatTheyAreAbout) {
  TestServer server;
  const Answer made = server.post(
      kCapacities,
      capacity(R"(,"nodeTopology":{"matchLabels":{"zone":"a"}},"capacity":"5Gi","maximumVolumeSize":"1Gi")"));
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(cells_of(server, kCapacities), R"(["x","fast","5Gi"])");
  EXPECT_EQ(reasons(server.merge(kCapacities + "/x", R"({"nodeTopology":{"matchLabels":{"zone":"b"}}})")),
            R"(nodeTopology: Invalid value: {"matchLabels":{"zone":"b"}}: field is immutable)");
  EXPECT_EQ(reasons(server.merge(kCapacities + "/x", R"({"storageClassName":"slow"})")),
            R"(storageClassName: Invalid value: "slow": field is immutable)");
  ASSERT_EQ(server.merge(kCapacities + "/x", R"({"capacity":null})").code, 200);
  EXPECT_EQ(cells_of(server, kCapacities), R"(["x","fast","<unset>"])");
  EXPECT_EQ(server.put(kCapacities + "/x", capacity("")).code, 422);
  EXPECT_NE(server.at_rest("/registry/csistoragecapacities/default/x"), "");
}

std::string pod_template(const std::string& image) {
  return R"({"metadata":{"name":"x"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c",)"
         R"("image":")" +
         image + R"("},{"name":"d","image":"i"}]}}})";
}

TEST(PodTemplates, AreTemplatesOfPods) {
  TestServer server;
  const Answer made = server.post(kTemplates, pod_template("i"));
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.string_at({"template", "spec", "restartPolicy"}), "Always");
  EXPECT_EQ(made.body.at({"metadata", "generation"})->if_int64(), 1);
  EXPECT_EQ(cells_of(server, kTemplates), R"(["x","c,d","i,i","a=b"])");
  const Answer changed = server.put(kTemplates + "/x", pod_template("j"));
  EXPECT_EQ(changed.body.at({"metadata", "generation"})->if_int64(), 2);
  const Answer labelled = server.merge(kTemplates + "/x", R"({"metadata":{"labels":{"a":"b"}}})");
  EXPECT_EQ(labelled.body.at({"metadata", "generation"})->if_int64(), 2);
  EXPECT_NE(server.at_rest("/registry/podtemplates/default/x"), "");
}

TEST(PodTemplates, AreValidatedAsPodsAre) {
  TestServer server;
  EXPECT_EQ(reasons(server.post(kTemplates, R"({"metadata":{"name":"x"},"template":{"spec":{"containers":[]}}})")),
            "template.spec.containers: Required value");
  ASSERT_EQ(server.post(kTemplates, pod_template("i")).code, 201);
  EXPECT_EQ(reasons(server.strategic(kTemplates + "/x",
                                     R"({"template":{"spec":{"containers":[{"name":"c","imagePullPolicy":"Now"}]}}})"))
                .find("template.spec.containers[0].imagePullPolicy: Unsupported value: \"Now\""),
            0U);
}

}  // namespace

}  // namespace spillway::apiserver
