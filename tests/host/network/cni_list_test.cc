#include "host/network/cni_list.h"

#include "host/network/bridge_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace spillway::host {
namespace {

using api::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json json(std::string_view text) {
  return api::parse_json(text).value();
}

std::string error_of(std::string_view text, std::string_view at = "10.conflist") {
  const auto list = parse_cni_list(text, at);
  return list ? "" : list.error().text();
}

TEST(CniList, HasOneNameAndVersionForAllPlugins) {
  const auto list = parse_cni_list(
      R"({"cniVersion":"0.4.0","name":"net","disableCheck":true,"plugins":[{"type":"bridge"},{"type":"portmap"}]})",
      "10.conflist");
  ASSERT_TRUE(list) << list.error().text();
  EXPECT_EQ(list->name, "net");
  EXPECT_EQ(list->plugins.size(), 2U);
  EXPECT_TRUE(list->disable_check);
  EXPECT_TRUE(cni_has_check(*list));
}

TEST(CniList, AFileWithOnePluginIsAListOfOne) {
  const auto list = parse_cni_list(R"({"cniVersion":"0.3.1","name":"net","type":"bridge"})", "10.conf");
  ASSERT_TRUE(list) << list.error().text();
  EXPECT_EQ(list->plugins.front().string_at({"type"}), "bridge");
  EXPECT_FALSE(cni_has_check(*list));
}

TEST(CniList, TakesTheHighestVersionThatIsKnown) {
  EXPECT_EQ(parse_cni_list(R"({"cniVersions":["0.4.0","1.0.0","1.1.0"],"name":"n","type":"b"})", "a.conf")->version,
            "1.0.0");
  EXPECT_EQ(
      parse_cni_list(R"({"cniVersion":"1.1.0","cniVersions":["0.4.0"],"name":"n","type":"b"})", "a.conf")->version,
      "0.4.0");
}

TEST(CniList, MistakesNameTheirFile) {
  EXPECT_THAT(error_of("{"), HasSubstr("10.conflist"));
  EXPECT_THAT(error_of(R"({"name":"n"})"), HasSubstr("cniVersion: 0.1.0 is not supported"));
  EXPECT_THAT(error_of(R"({"cniVersion":"1.0.0","name":"../n","plugins":[{"type":"b"}]})"), HasSubstr("name"));
  EXPECT_THAT(error_of(R"({"cniVersion":"1.0.0","name":"n","type":"b"})"), HasSubstr("plugins"));
  EXPECT_THAT(error_of(R"({"cniVersion":"1.0.0","name":"n","plugins":[]})"), HasSubstr("plugins"));
  EXPECT_THAT(error_of(R"({"cniVersion":"1.0.0","name":"n","plugins":[{}]})"), HasSubstr("type"));
  EXPECT_THAT(error_of(R"({"cniVersion":"1.0.0","name":"n"})", "a.conf"), HasSubstr("type"));
  EXPECT_THAT(error_of(R"({"cniVersion":"1.0.0","name":"n","plugins":[{"type":"../b"}]})"), HasSubstr("type"));
}

TEST(CniList, TheFirstFileByNameCounts) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("cni_list_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  EXPECT_EQ(read_cni_list(folder.string()).error().code, ErrorCode::kNotFound);
  std::filesystem::create_directories(folder / "05.conflist");
  EXPECT_EQ(read_cni_list(folder.string()).error().code, ErrorCode::kNotFound) << "a directory is no file";
  std::ofstream(folder / "20.conflist") << R"({"cniVersion":"1.0.0","name":"second","plugins":[{"type":"b"}]})";
  std::ofstream(folder / "10.conf") << R"({"cniVersion":"1.0.0","name":"first","type":"b"})";
  std::ofstream(folder / "01.txt") << "no";
  EXPECT_EQ(read_cni_list(folder.string())->name, "first");
  std::ofstream(folder / "00.conf") << "no";
  EXPECT_EQ(read_cni_list(folder.string()).error().code, ErrorCode::kInvalid) << "a mistake chooses no other network";
  std::filesystem::remove_all(folder);
}

TEST(CniInput, HasWhatThePluginListsAndTheResultSoFar) {
  const auto list =
      parse_cni_list(R"({"cniVersion":"1.0.0","name":"net","plugins":[{"type":"portmap","own":1,"capabilities":)"
                     R"({"portMappings":true,"bandwidth":false}}]})",
                     "a.conflist");
  const Json capabilities = json(R"({"portMappings":[{"hostPort":80}],"bandwidth":{"ingressRate":1}})");
  EXPECT_EQ(json(cni_input(*list, list->plugins.front(), capabilities, json(R"({"ips":[]})"))),
            json(R"({"type":"portmap","own":1,"name":"net","cniVersion":"1.0.0","prevResult":{"ips":[]},)"
                 R"("runtimeConfig":{"portMappings":[{"hostPort":80}]}})"));
  EXPECT_EQ(json(cni_input(*list, list->plugins.front(), Json::object({}), Json())),
            json(R"({"type":"portmap","own":1,"name":"net","cniVersion":"1.0.0"})"));
}

TEST(CniResult, OfAPodAreTheAddressesOfInterfacesInASandbox) {
  EXPECT_THAT(addresses_in(json(R"({"interfaces":[{"name":"br"},{"name":"eth0","sandbox":"/n"}],"ips":[)"
                                R"({"address":"10.0.0.1/24","interface":0},{"address":"10.0.0.7/24","interface":1},)"
                                R"({"address":"fd00::7/64","interface":1},{"address":"10.0.0.8/24","interface":1},)"
                                R"({"address":"10.0.0.9/24","interface":-1}]})")),
              ElementsAre("10.0.0.7", "fd00::7"));
  EXPECT_THAT(addresses_in(json(R"({"ips":[{"address":"10.0.0.7/24"}]})")), ElementsAre("10.0.0.7"));
  EXPECT_THAT(addresses_in(json("{}")), IsEmpty());
}

TEST(BridgeNetwork, IsAConfigurationThatIsReadAgain) {
  const auto list = parse_cni_list(
      bridge_list({.directory = "/d", .bridge = "spill1", .ranges = {"10.244.3.0/24", "fd00:3::/64"}}), "10.conflist");
  ASSERT_TRUE(list) << list.error().text();
  EXPECT_EQ(list->plugins.front().string_at({"bridge"}), "spill1");
  EXPECT_EQ(bridge_name("i", "n-1").size(), 13U);
  EXPECT_NE(bridge_name("i", "n-1"), bridge_name("i", "n-2"));
}

}  // namespace
}  // namespace spillway::host
