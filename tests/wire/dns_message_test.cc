// Messages of the Domain Name System: what is parsed, what is refused, how answers are printed and cut.
#include "wire/dns/message.h"
#include "wire/dns/stream_frames.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace spillway::wire {
namespace {

using dns::RecordType;

std::string two_bytes(unsigned number) {
  return {static_cast<char>(number >> 8U), static_cast<char>(number & 0xffU)};
}

std::string name_bytes(std::string_view name) {
  std::string bytes;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    bytes += static_cast<char>(end - begin);
    bytes += name.substr(begin, end - begin);
    begin = end + 1;
  }
  return bytes + '\0';
}

std::string header(unsigned id, unsigned flags, unsigned questions, unsigned answers = 0, unsigned authority = 0,
                   unsigned additional = 0) {
  return two_bytes(id) + two_bytes(flags) + two_bytes(questions) + two_bytes(answers) + two_bytes(authority) +
         two_bytes(additional);
}

std::string question_bytes(std::string_view name, unsigned type, unsigned record_class = 1) {
  return name_bytes(name) + two_bytes(type) + two_bytes(record_class);
}

std::string opt(unsigned bytes, unsigned version = 0, bool dnssec_ok = false) {
  return std::string(1, '\0') + two_bytes(41) + two_bytes(bytes) + two_bytes(version) +
         two_bytes(dnssec_ok ? 0x8000U : 0) + two_bytes(0);
}

unsigned number_in(const std::string& bytes, std::size_t at) {
  return static_cast<unsigned>(static_cast<unsigned char>(bytes.at(at))) << 8U |
         static_cast<unsigned char>(bytes.at(at + 1));
}

bool is_truncated(const std::string& bytes) {
  return (number_in(bytes, 2) & 0x0200U) != 0;
}

DnsQuery query_of(const std::string& bytes) {
  return std::get<DnsQuery>(parse_query(bytes));
}

std::string reply_to(const std::string& bytes) {
  return std::get<BadMessage>(parse_query(bytes)).reply;
}

dns::Record address(const std::string& name, std::uint8_t last) {
  api::IpAddress ip = api::parse_ip("10.0.0.0").value();
  ip.octets[15] = last;
  return {name, RecordType::kA, 30, ip};
}

TEST(DnsMessage, ParsesAQuery) {
  const DnsQuery query = query_of(header(0x1234, 0x0110, 1) + question_bytes("WeB.shop.SVC.cluster.local", 28));
  EXPECT_EQ(query.id, 0x1234);
  EXPECT_TRUE(query.recursion_desired);
  EXPECT_TRUE(query.checking_disabled);
  EXPECT_EQ(query.question.name, "WeB.shop.SVC.cluster.local.");
  EXPECT_EQ(query.question.type, RecordType::kAaaa);
  EXPECT_FALSE(query.has_edns);
  EXPECT_EQ(query.udp_answer_max(), 512U);
}

TEST(DnsMessage, TakesTheSizeOfEdnsWithinBounds) {
  const auto size = [](unsigned bytes) {
    return query_of(header(1, 0, 1, 0, 0, 1) + question_bytes("a", 1) + opt(bytes, 0, true)).udp_answer_max();
  };
  EXPECT_EQ(size(0), 512U);
  EXPECT_EQ(size(800), 800U);
  EXPECT_EQ(size(65535), 1232U);
}

TEST(DnsMessage, SaysWhichVersionOfEdnsItKnows) {
  const std::string reply = reply_to(header(7, 0, 1, 0, 0, 1) + question_bytes("a", 1) + opt(1232, 1));
  ASSERT_GE(reply.size(), 12U);
  EXPECT_EQ(number_in(reply, 0), 7U);
  EXPECT_EQ(number_in(reply, 10), 1U);  // an OPT record with the rest of BADVERS
}

TEST(DnsMessage, AnswersBrokenQueriesWithAFormatError) {
  const std::vector<std::string> broken{
      header(9, 0x0100, 1),                                                             // no question
      header(9, 0x0100, 2) + question_bytes("a", 1) + question_bytes("b", 1),           // two
      header(9, 0x0100, 0),                                                             // none
      header(9, 0x0100, 1, 1) + question_bytes("a", 1) + question_bytes("a", 1),        // with an answer
      header(9, 0x0100, 1) + std::string("\xc0\x0c", 2) + two_bytes(1) + two_bytes(1),  // a name that leads to itself
      header(9, 0x0100, 1) + std::string(1, '\x3f') + "abc"};
  for (const std::string& each : broken) {
    const std::string reply = reply_to(each);
    ASSERT_EQ(reply.size(), 12U);
    EXPECT_EQ(number_in(reply, 0), 9U);
    EXPECT_EQ(number_in(reply, 2), 0x8101U);
  }
}

TEST(DnsMessage, SaysNothingToAnswersAndScraps) {
  EXPECT_EQ(reply_to(""), "");
  EXPECT_EQ(reply_to(header(9, 0, 1).substr(0, 11)), "");
  EXPECT_EQ(reply_to(header(9, 0x8000, 1) + question_bytes("a", 1)), "");
  EXPECT_EQ(reply_to(std::string(kDnsMessageMax + 1, 'x')), "");
}

TEST(DnsMessage, PrintsEverySortOfRecord) {
  const DnsQuery query = query_of(header(5, 0x0100, 1) + question_bytes("X.local", 255));
  dns::Answer answer;
  answer.answers = {address("X.local.", 1),
                    {"X.local.", RecordType::kAaaa, 30, api::parse_ip("fd00::1").value()},
                    {"X.local.", RecordType::kCname, 30, dns::NameData{"y.local."}},
                    {"X.local.", RecordType::kTxt, 30, dns::TextData{"1.1.0"}},
                    {"X.local.", RecordType::kSrv, 30, dns::ServiceData{0, 50, 80, "y.local."}}};
  answer.authority = {{"local.", RecordType::kSoa, 5,
                       dns::AuthorityData{"ns.dns.local.", "hostmaster.local.", 7, 7200, 1800, 86400, 5}}};
  const std::string bytes = print_answer(query, answer, nullptr, 0, 1232);
  EXPECT_EQ(number_in(bytes, 0), 5U);
  EXPECT_EQ(number_in(bytes, 2), 0x8580U);  // an answer, of authority; recursion is wished and offered
  EXPECT_EQ(number_in(bytes, 6), 5U);
  EXPECT_EQ(number_in(bytes, 8), 1U);
  EXPECT_TRUE(bytes.contains("\1X\5local"));
  EXPECT_TRUE(
      bytes.contains("\5"
                     "1.1.0"));
}

TEST(DnsMessage, OmitsWhatDoesNotFit) {
  const DnsQuery query = query_of(header(5, 0x0100, 1) + question_bytes("many.local", 1));
  dns::Answer answer;
  for (int i = 0; i < 20; ++i) answer.answers.push_back(address("many.local.", static_cast<std::uint8_t>(i)));
  for (int i = 0; i < 20; ++i) answer.additional.push_back(address("other.local.", static_cast<std::uint8_t>(i)));
  const std::string whole = print_answer(query, answer, nullptr, 0, 1232);
  EXPECT_FALSE(is_truncated(whole));
  EXPECT_EQ(number_in(whole, 10), 20U);
  const std::string without_additional = print_answer(query, answer, nullptr, 0, 512);
  EXPECT_FALSE(is_truncated(without_additional));
  EXPECT_EQ(number_in(without_additional, 6), 20U);
  EXPECT_EQ(number_in(without_additional, 10), 0U);
  const std::string cut = print_answer(query, answer, nullptr, 0, 200);
  EXPECT_TRUE(is_truncated(cut));
  EXPECT_LE(cut.size(), 200U);
  EXPECT_GT(number_in(cut, 6), 5U);
}

TEST(DnsMessage, SaysThatMoreRecordsExist) {
  const DnsQuery query = query_of(header(5, 0x0100, 1) + question_bytes("many.local", 1));
  dns::Answer answer;
  answer.answers.push_back(address("many.local.", 1));
  answer.cut = true;
  EXPECT_TRUE(is_truncated(print_answer(query, answer, nullptr, 0, 1232)));
}

TEST(DnsMessage, ANameThatIsTooLongHasNoRecord) {
  const DnsQuery query = query_of(header(5, 0x0100, 1) + question_bytes("a.local", 1));
  std::string target;
  for (int i = 0; i < 60; ++i) target += "label.";
  dns::Answer answer;
  answer.answers.push_back({"a.local.", RecordType::kCname, 30, dns::NameData{target}});
  EXPECT_EQ(number_in(print_answer(query, answer, nullptr, 0, 1232), 6), 0U);
}

class ForeignMessage : public ::testing::Test {
 protected:
  static std::string record(unsigned type, std::uint32_t ttl, const std::string& data) {
    return std::string("\xc0\x0c", 2) + two_bytes(type) + two_bytes(1) + two_bytes(ttl >> 16U) +
           two_bytes(ttl & 0xffffU) + two_bytes(static_cast<unsigned>(data.size())) + data;
  }

  static std::string soa(std::uint32_t ttl, std::uint32_t minimum) {
    std::string data = name_bytes("ns.example") + name_bytes("mail.example");
    for (std::uint32_t number : {1U, 2U, 3U, 4U, minimum})
      data += two_bytes(number >> 16U) + two_bytes(number & 0xffffU);
    return record(6, ttl, data);
  }

  const OutgoingQuery asked_{.id = 77, .question = {"Example.com.", RecordType::kA}};
  const std::string question_ = question_bytes("example.com", 1);
};

TEST_F(ForeignMessage, AQueryIsPrintedWithEdns) {
  const DnsQuery query = query_of(print_query(asked_));
  EXPECT_EQ(query.id, 77);
  EXPECT_EQ(query.question, asked_.question);
  EXPECT_TRUE(query.recursion_desired);
  EXPECT_TRUE(query.has_edns);
  EXPECT_EQ(query.edns_bytes, 1232);
}

TEST_F(ForeignMessage, OnlyTheAnswerToTheQuestionIsTaken) {
  const std::string data = record(1, 60, "\x0a\x01\x02\x03");
  EXPECT_TRUE(parse_answer(header(77, 0x8180, 1, 1) + question_ + data, asked_));
  EXPECT_FALSE(parse_answer(header(78, 0x8180, 1, 1) + question_ + data, asked_));
  EXPECT_FALSE(parse_answer(header(77, 0x0180, 1, 1) + question_ + data, asked_));
  EXPECT_FALSE(parse_answer(header(77, 0x8180, 1, 1) + question_bytes("example.org", 1) + data, asked_));
  EXPECT_FALSE(parse_answer(header(77, 0x8180, 1, 1) + question_bytes("example.com", 28) + data, asked_));
  EXPECT_FALSE(parse_answer(header(77, 0x8180, 1, 1) + question_bytes("example.com", 1, 3) + data, asked_));
  EXPECT_FALSE(parse_answer(header(77, 0x8180, 0, 1) + data, asked_));
  EXPECT_FALSE(parse_answer(header(77, 0x8180, 1, 2) + question_ + data, asked_));
}

TEST_F(ForeignMessage, TimesAreTheLeastOfTheAnswers) {
  const std::string data = record(1, 60, "\x0a\x01\x02\x03") + record(1, 20, "\x0a\x01\x02\x04");
  EXPECT_EQ(parse_answer(header(77, 0x8180, 1, 2) + question_ + data, asked_)->ttl_seconds, 20U);
  EXPECT_EQ(parse_answer(header(77, 0x8183, 1, 0, 1) + question_ + soa(600, 15), asked_)->ttl_seconds, 15U);
  EXPECT_EQ(parse_answer(header(77, 0x8180, 1, 0, 1) + question_ + soa(10, 15), asked_)->ttl_seconds, 10U);
  EXPECT_EQ(parse_answer(header(77, 0x8183, 1) + question_, asked_)->ttl_seconds, std::nullopt);
  EXPECT_EQ(parse_answer(header(77, 0x8182, 1, 0, 1) + question_ + soa(10, 15), asked_)->ttl_seconds, std::nullopt);
}

TEST_F(ForeignMessage, ItsRecordsAreRepeatedWithLessTime) {
  const std::string message = header(77, 0x8180, 1, 1) + question_ + record(1, 60, "\x0a\x01\x02\x03");
  const DnsQuery query = query_of(header(9, 0x0100, 1) + question_bytes("EXAMPLE.com", 1));
  const std::string bytes = print_answer(query, {}, &message, 50, 1232);
  EXPECT_EQ(number_in(bytes, 0), 9U);
  EXPECT_EQ(number_in(bytes, 2), 0x8180U);
  EXPECT_TRUE(bytes.contains("EXAMPLE"));
  OutgoingQuery asked = asked_;
  asked.id = 9;
  EXPECT_EQ(parse_answer(bytes, asked)->ttl_seconds, 10U);
  EXPECT_EQ(parse_answer(print_answer(query, {}, &message, 500, 1232), asked)->ttl_seconds, 0U);
}

TEST_F(ForeignMessage, ItsRcodeAndRecordsFollowAnAlias) {
  const std::string message = header(77, 0x8183, 1, 0, 1) + question_ + soa(10, 15);
  const DnsQuery query = query_of(header(9, 0x0100, 1) + question_bytes("out.shop.svc.cluster.local", 1));
  dns::Answer answer;
  answer.answers.push_back({"out.shop.svc.cluster.local.", RecordType::kCname, 30, dns::NameData{"example.com."}});
  const std::string bytes = print_answer(query, answer, &message, 0, 1232);
  EXPECT_EQ(number_in(bytes, 2), 0x8183U);
  EXPECT_EQ(number_in(bytes, 6), 1U);
  EXPECT_EQ(number_in(bytes, 8), 1U);
}

TEST(DnsFrames, AMessageFollowsItsLength) {
  std::string stream;
  append_frame(stream, "abc");
  append_frame(stream, std::string(300, 'x'));
  EXPECT_EQ(first_frame(stream), "abc");
  EXPECT_EQ(first_frame(std::string_view(stream).substr(5))->size(), 300U);
  EXPECT_EQ(first_frame(std::string_view(stream).substr(0, 4)), std::nullopt);
  EXPECT_EQ(first_frame("\0"), std::nullopt);
}

}  // namespace
}  // namespace spillway::wire
