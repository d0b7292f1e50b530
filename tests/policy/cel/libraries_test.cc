// Kubernetes' libraries of amounts, URLs, addresses and formats, row by row after their pages.
// Source: Kubernetes docs, "Common Expression Language in Kubernetes"; RFC 3986, RFC 4291, RFC 5952.
#include "policy/cel/evaluating.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::cel {

namespace {

const std::string kNoBudget = "operation cancelled: actual cost limit exceeded";

void all_true(const std::vector<std::string_view>& rows) {
  for (const std::string_view row : rows) EXPECT_EQ(outcome(row), "true") << row;
}

void all_are(const std::vector<std::pair<std::string_view, std::string_view>>& rows) {
  for (const auto& [expression, want] : rows) EXPECT_EQ(outcome(expression), want) << expression;
}

TEST(CelQuantity, IsReadAndCompared) {
  all_true({"isQuantity('1.3G')",
            "isQuantity('-1.5Mi')",
            "isQuantity('1e3')",
            "!isQuantity('200K')",
            "!isQuantity('Three')",
            "!isQuantity('')",
            "quantity('512Mi') == quantity('0.5Gi')",
            "quantity('1024Mi') == quantity('1Gi')",
            "quantity('1k') == quantity('1000')",
            "quantity('50k') != quantity('50Ki')",
            "quantity('150Mi').isGreaterThan(quantity('100Mi'))",
            "!quantity('50M').isGreaterThan(quantity('100M'))",
            "!quantity('50M').isLessThan(quantity('50M'))",
            "quantity('50M').isLessThan(quantity('100M'))",
            "quantity('200M').compareTo(quantity('0.2G')) == 0",
            "quantity('50M').compareTo(quantity('50Mi')) == -1",
            "quantity('50Mi').compareTo(quantity('50M')) == 1",
            "sign(quantity('0')) == 0 && sign(quantity('-1')) == -1 && sign(quantity('5m')) == 1",
            "type(quantity('1')) == kubernetes.Quantity",
            "[quantity('1'), quantity('2')] == [quantity('1000m'), quantity('2')]",
            "quantity('1') in [quantity('1000m')]"});
  EXPECT_TRUE(outcome("quantity('10 m') == quantity('1')").contains("quantities must match the regular expression"))
      << outcome("quantity('10 m') == quantity('1')");
}

TEST(CelQuantity, IsConvertedAndAdded) {
  all_true({"quantity('50000000G').isInteger()", "quantity('9999999999999999999999999').isInteger() == false",
            "quantity('1500m').isInteger() == false", "quantity('50k').asInteger() == 50000",
            "quantity('-3').asInteger() == -3", "quantity('50.703k').asApproximateFloat() == 50703.0",
            "quantity('0.5').asApproximateFloat() == 0.5", "quantity('-1Ki').asApproximateFloat() == -1024.0",
            "quantity('10000k').asApproximateFloat() == 10000000.0",
            "quantity('1e30').asApproximateFloat() > 9.9e29 && quantity('1e30').asApproximateFloat() < 1.01e30",
            "quantity('50k').add(quantity('20')) == quantity('50.02k')", "quantity('50k').add(20) == quantity('50020')",
            "quantity('50k').sub(quantity('20')) == quantity('49980')", "quantity('50k').sub(20000) == quantity('30k')",
            "sign(quantity('1').sub(2)) == -1"});
  all_are({{"quantity('9999999999999999999999999').asInteger() == 1", "cannot convert value to integer"},
           {"quantity('1500m').asInteger() == 1", "cannot convert value to integer"}});
  EXPECT_TRUE(outcome("quantity('1').add('1') == 1").contains("found no matching overload for 'add'"));
}

TEST(CelUrl, IsReadInParts) {
  all_true({"isURL('https://user:pass@example.com:80/path?query=val')",
            "isURL('/absolute-path')",
            "isURL('*')",
            "isURL('mailto:a@b')",
            "!isURL('https://a:b:c/')",
            "!isURL('../relative-path')",
            "!isURL('')",
            "!isURL('a b')",
            "!isURL(':80')",
            "!isURL('https://a/%zz')",
            "!isURL('https://a%41/')",
            "!isURL('https://a b/')",
            "!isURL('https://[::1/')",
            "!isURL('https://a<b>{}/')",
            "!isURL('http://a\\tb/')",
            "url('https://example.com:80/').getScheme() == 'https'",
            "url('HTTPS://example.com/').getScheme() == 'https'",
            "url('/path').getScheme() == ''",
            "url('https://example.com:80/').getHost() == 'example.com:80'",
            "url('http://%ff%C3%A9/').getHost() == '\uFFFD\u00e9'",
            "url('/p?a%c3=%c3%a9%ff').getQuery() == {'a\uFFFD': ['\u00e9\uFFFD']}",
            "url('https://example.com/').getHost() == 'example.com'",
            "url('https://[::1]:80/').getHost() == '[::1]:80'",
            "url('https://u:p@a:1/').getHost() == 'a:1'",
            "url('/path').getHost() == ''",
            "url('https://example.com:80/').getHostname() == 'example.com'",
            "url('https://127.0.0.1:80/').getHostname() == '127.0.0.1'",
            "url('https://[::1]:80/').getHostname() == '::1'",
            "url('/path').getHostname() == ''",
            "url('https://example.com:80/').getPort() == '80'",
            "url('https://example.com/').getPort() == ''",
            "url('https://[::1]/').getPort() == ''",
            "url('https://[::1]:443/').getPort() == '443'",
            "url('https://example.com/path').getEscapedPath() == '/path'",
            "url('https://example.com/path with spaces/').getEscapedPath() == '/path%20with%20spaces/'",
            "url('https://example.com/a%2Fb').getEscapedPath() == '/a%2Fb'",
            "url('https://example.com/a%20b').getEscapedPath() == '/a%20b'",
            "url('https://example.com/a#b').getEscapedPath() == '/a%23b'",
            "url('https://example.com').getEscapedPath() == ''",
            "url('https://example.com/path?k1=a&k2=b&k2=c').getQuery() == {'k1': ['a'], 'k2': ['b', 'c']}",
            "url('https://example.com/path?key with spaces=value with spaces').getQuery() == "
            "{'key with spaces': ['value with spaces']}",
            "url('https://example.com/path?').getQuery() == {}",
            "url('https://example.com/path').getQuery() == {}",
            "url('/p?a+b=c%26d&e&=f').getQuery() == {'a b': ['c&d'], 'e': [''], '': ['f']}",
            "url('/p?a=%zz&b=1;c=2&d=3').getQuery() == {'d': ['3']}",
            "url('https://a/') == url('https://a/') && url('https://a/') != url('https://b/')"});
  EXPECT_EQ(outcome("url('a b') == url('')"),
            "URL parse error during conversion from string: parse \"a b\": invalid URI for request");
}

TEST(CelIp, IsReadAndAsked) {
  all_true({"isIP('127.0.0.1')",
            "isIP('::1')",
            "isIP('2001:db8::abcd')",
            "!isIP('127.0.0.256')",
            "!isIP('127.0.0')",
            "!isIP('127.00.0.1')",
            "!isIP('::ffff:1.2.3.4')",
            "!isIP(':::1')",
            "!isIP('fe80::1%en0')",
            "!isIP('')",
            "!isIP('::1.02.3.4')",
            "ip.isCanonical('127.0.0.1')",
            "ip.isCanonical('2001:db8::abcd')",
            "ip.isCanonical('::')",
            "ip.isCanonical('1:2:3:4:5:6:7:8')",
            "ip.isCanonical('1:0:0:2::3')",
            "!ip.isCanonical('1::2:0:0:0:3')",
            "!ip.isCanonical('2001:DB8::ABCD')",
            "!ip.isCanonical('2001:db8::0:0:0:abcd')",
            "!ip.isCanonical('1::2:3:4:5:6:7')",
            "ip('127.0.0.1').family() == 4 && ip('::1').family() == 6",
            "ip('127.0.0.1').isLoopback() && ip('::1').isLoopback() && !ip('1.2.3.4').isLoopback()",
            "ip('0.0.0.0').isUnspecified() && ip('::').isUnspecified() && !ip('127.0.0.1').isUnspecified()",
            "ip('224.0.0.1').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()",
            "!ip('224.0.1.1').isLinkLocalMulticast() && !ip('fd00::1').isLinkLocalMulticast()",
            "ip('169.254.169.254').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()",
            "!ip('192.168.0.1').isLinkLocalUnicast()",
            "ip('192.168.0.1').isGlobalUnicast() && ip('2001:db8::abcd').isGlobalUnicast()",
            "!ip('255.255.255.255').isGlobalUnicast() && !ip('ff00::1').isGlobalUnicast()",
            "!ip('127.0.0.1').isGlobalUnicast() && !ip('239.1.2.3').isGlobalUnicast()",
            "string(ip('2001:0DB8::0:0001')) == '2001:db8::1'",
            "string(ip('::1.2.3.4')) == '::102:304'",
            "string(ip('1:0:0:2:0:0:0:3')) == '1:0:0:2::3'",
            "ip('127.0.0.1') == ip('127.0.0.1') && ip('127.0.0.1') != ip('10.0.0.1')",
            "ip('2001:db8::1') == ip('2001:DB8:0:0:0:0:0:1')",
            "type(ip('1.2.3.4')) == net.IP"});
  EXPECT_EQ(
      outcome("ip('1.2.3') == ip('1.2.3.4')"),
      "IP Address \"1.2.3\" parse error during conversion from string: ParseAddr(\"1.2.3\"): IPv4 address too short");
}

TEST(CelCidr, IsReadAndAsked) {
  all_true({"isCIDR('192.168.0.0/16')",
            "isCIDR('::1/128')",
            "!isCIDR('192.168.0.0')",
            "!isCIDR('192.168.0.0/33')",
            "!isCIDR('192.168.0.0/08')",
            "!isCIDR('192.168.0.0/')",
            "!isCIDR('192.168.0.0/-1')",
            "!isCIDR('::1/129')",
            "!isCIDR('::ffff:1.2.3.4/96')",
            "cidr('192.168.0.0/24').containsIP(ip('192.168.0.1'))",
            "cidr('192.168.0.0/24').containsIP('192.168.0.255')",
            "!cidr('192.168.0.0/24').containsIP('192.168.1.0')",
            "!cidr('::/0').containsIP('192.168.1.0')",
            "cidr('192.168.0.0/16').containsCIDR(cidr('192.168.10.0/24'))",
            "cidr('192.168.0.0/24').containsCIDR('192.168.0.128/25')",
            "cidr('192.168.0.0/24').containsCIDR('192.168.0.0/24')",
            "!cidr('192.168.0.0/24').containsCIDR('192.168.0.0/23')",
            "!cidr('192.168.0.0/24').containsCIDR('192.168.1.0/25')",
            "cidr('192.168.0.1/24').ip() == ip('192.168.0.1')",
            "cidr('192.168.0.1/24').masked() == cidr('192.168.0.0/24')",
            "cidr('192.168.0.0/24').masked() == cidr('192.168.0.0/24')",
            "cidr('2001:db8:ffff::1/33').masked() == cidr('2001:db8:8000::/33')",
            "cidr('1.2.3.4/0').masked() == cidr('0.0.0.0/0') && cidr('1.2.3.4/32').masked() == cidr('1.2.3.4/32')",
            "cidr('192.168.0.1/24') != cidr('192.168.0.0/24')",
            "cidr('192.168.0.0/16').prefixLength() == 16",
            "string(cidr('192.168.0.1/16')) == '192.168.0.1/16'",
            "cidr('192.168.0.0/24').ip().family() == 4",
            "type(cidr('1.2.3.4/8')) == net.CIDR"});
  all_are(
      {{"cidr('a') == cidr('b')",
        "network address parse error during conversion from string: network address parse error during conversion from "
        "string: netip.ParsePrefix(\"a\"): no '/'"},
       {"cidr('10.0.0.0/8').containsIP('10')", "no such overload"},
       {"cidr('10.0.0.0/8').containsCIDR('10')",
        "network address parse error during conversion from string: network address parse error during conversion from "
        "string: netip.ParsePrefix(\"10\"): no '/'"}});
}

TEST(CelFormat, IsValidated) {
  all_true({"!format.dns1123Label().validate('my-label').hasValue()",
            "format.dns1123Label().validate('My').hasValue()",
            "format.dns1123Label().validate('a-').hasValue()",
            "!format.dns1123LabelPrefix().validate('a-').hasValue()",
            "format.dns1123LabelPrefix().validate('-').hasValue()",
            "!format.dns1123Subdomain().validate('a.b').hasValue()",
            "!format.dns1123SubdomainPrefix().validate('a.b-').hasValue()",
            "format.dns1123SubdomainPrefix().validate('a..b').hasValue()",
            "!format.dns1035Label().validate('a1').hasValue() && format.dns1035Label().validate('1a').hasValue()",
            "!format.dns1035LabelPrefix().validate('a-').hasValue()",
            "!format.qualifiedName().validate('a.b/C_d').hasValue()",
            "format.qualifiedName().validate('a/b/c').hasValue()",
            "!format.labelValue().validate('').hasValue() && format.labelValue().validate('-').hasValue()",
            "!format.uri().validate('http://a/').hasValue()",
            "format.uri().validate('a').value() == ['parse \"a\": invalid URI for request']",
            "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
            "format.uuid().validate('1').value() == ['does not match the UUID format']",
            "!format.byte().validate('aGVsbG8=').hasValue()",
            "format.byte().validate('aGVsbG8').value() == ['invalid base64']",
            "!format.date().validate('2021-01-01').hasValue()",
            "format.date().validate('2021-02-30').value() == ['invalid date']",
            "!format.datetime().validate('2021-01-01T00:00:00Z').hasValue()",
            "format.datetime().validate('2021-01-01').value() == ['invalid datetime']",
            "format.named('dns1123Label').value() == format.dns1123Label()",
            "format.named('dns1123Label').value() != format.uuid()",
            "!format.named('none').hasValue()",
            "!format.named('format.uuid').hasValue() && !format.named('').hasValue()",
            "format.dns1123Label().validate('My').orValue([]).join('; ').startsWith('a lowercase RFC 1123 label')"});
  EXPECT_TRUE(outcome("format.none() == 1").contains("undeclared reference"));
}

TEST(CelLibraries, AreWithinTheBudget) {
  const std::string many(2'000, 'a');
  for (const std::string_view text :
       {"isQuantity('{}')", "isURL('/{}')", "isIP('{}')", "isCIDR('{}')", "format.uuid().validate('{}').hasValue()",
        "url('/{}').getEscapedPath() == ''", "url('/?{}').getQuery() == {{}}"}) {
    const std::string row = fmt::format(fmt::runtime(text), many);
    EXPECT_EQ(outcome(row, 100), kNoBudget) << text;
    EXPECT_NE(outcome(row), kNoBudget) << text;
  }
  std::string pairs = "/?a";
  for (int i = 0; i < 1'100; ++i) pairs += fmt::format("&{}", i);
  EXPECT_EQ(outcome(fmt::format("url('{}').getQuery() == {{}}", pairs)), kNoBudget) << "every name is looked for";
}

}  // namespace

}  // namespace spillway::cel
