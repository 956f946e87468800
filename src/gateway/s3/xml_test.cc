#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "gateway/s3/uri.h"
#include "gateway/s3/xml_request.h"
#include "gateway/s3/xml_response.h"
#include "gateway/s3/xml_writer.h"

namespace cairn::s3 {
namespace {

template <typename T>
std::string outcome(const S3Result<T>& result) {
  return result ? "ok" : std::string(result.error().name());
}

std::string escaped(std::string_view text) {
  std::string out;
  append_xml_text(out, text);
  return out;
}

TEST(XmlWriter, EscapesMarkupAndReplacesWhatXmlCannotCarry) {
  EXPECT_EQ(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(escaped("\t\n\r"), "\t\n&#13;");
  EXPECT_EQ(escaped("x\x10y"), "x\xef\xbf\xbdy");
  EXPECT_EQ(escaped("\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80"), "\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80");
  // Cut short, overlong, surrogate, beyond Unicode, U+FFFF.
  for (const char* bad : {"\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xef\xbf\xbf", "\xff"}) {
    EXPECT_TRUE(escaped(bad).starts_with("\xef\xbf\xbd")) << bad;
  }
}

TEST(XmlRequest, Delete) {
  const auto parsed = parse_delete(
      "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>"
      "<Object><Key>aaa/a&lt;a</Key></Object><Object><Key>&amp;</Key><ETag>\"e\"</ETag></Object>"
      "<Object><Key> </Key></Object></Delete>");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_TRUE(parsed->quiet);
  ASSERT_EQ(parsed->items.size(), 3u);
  EXPECT_EQ(parsed->items[0].key, "aaa/a<a");
  EXPECT_EQ(parsed->items[1].key, "&");
  EXPECT_EQ(parsed->items[1].etag, "e");
  EXPECT_EQ(parsed->items[2].key, " ");
}

// Other parsers' texts come in pieces, too: a key must never be the first of them only.
TEST(XmlRequest, TakesKeysWhole) {
  const std::pair<const char*, const char*> cases[] = {
      {"a<![CDATA[b]]>c", "abc"},
      {"<![CDATA[a]]><![CDATA[&amp;<]]>", "a&amp;<"},
      {"a<!-- & -->b", "ab"},
      {"a<?x &?>b", "ab"},
      {" <![CDATA[ ]]> ", "   "},
      {"a&#13;b&#x9;", "a\rb\t"},
      {"&quot;&apos;&#x1F600;", "\"'\xf0\x9f\x98\x80"},
      {"a\xf0\x9f\x98\x80", "a\xf0\x9f\x98\x80"},
  };
  for (const auto& [text, key] : cases) {
    const auto parsed = parse_delete("<Delete><Object><Key>" + std::string(text) + "</Key></Object></Delete>");
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(parsed->items.at(0).key, key) << text;
  }
  // With everything that may stand around a document.
  EXPECT_EQ(
      outcome(parse_delete("\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- c -->\n<a:Delete xmlns:a=\"u\"><a:Object><a:Key>k"
                           "</a:Key></a:Object></a:Delete>\n<!-- & -->\n")),
      "ok");
}

// What a lenient parser makes of these is another key.
TEST(XmlRequest, RefusesCharactersAndReferencesThatXmlDoesNotHave) {
  using namespace std::string_literals;
  for (const std::string& text : {"a&#0;b"s, "a&#x0;"s, "a&b"s, "a&foo;"s, "a&;"s, "a&#;"s, "a&#x;"s, "a&#xZ;"s,
                                  "a&#-1;"s, "a&#xD800;"s, "a&#xFFFE;"s, "a&#x110000;"s, "a&#99999999999;"s, "a&amp"s,
                                  "a\0b"s, "a\x01"s, "a\xff"s, "a\xed\xa0\x80"s, "<![CDATA[\x02]]>"s}) {
    EXPECT_EQ(outcome(parse_delete("<Delete><Object><Key>" + text + "</Key></Object></Delete>")), "MalformedXML")
        << text;
  }
  const std::string good = "<Delete><Object><Key>k</Key></Object></Delete>";
  for (const std::string& body :
       {good + "x"s, "x"s + good, good + "\0"s, good + "<![CDATA[x]]>"s, "<!-- "s + good, "<![CDATA["s}) {
    EXPECT_EQ(outcome(parse_delete(body)), "MalformedXML") << body;
  }
  // Conditions that aren't known must not be passed over.
  for (const char* condition :
       {"<Size>1</Size>", "<LastModifiedTime>Mon, 01 Jan 2001 00:00:00 GMT</LastModifiedTime>"}) {
    EXPECT_EQ(outcome(parse_delete("<Delete><Object><Key>k</Key>" + std::string(condition) + "</Object></Delete>")),
              "NotImplemented");
  }
}

TEST(XmlRequest, RefusesWhatItCannotBeSureOf) {
  std::string too_many = "<Delete>";
  for (int i = 0; i < 1001; ++i) too_many += "<Object><Key>k</Key></Object>";
  too_many += "</Delete>";
  const std::pair<std::string, const char*> cases[] = {
      {"", "MalformedXML"},
      {"<Delete></Delete>", "MalformedXML"},
      {"<Delete><Object><Key>a&#x10;b</Key></Object></Delete>", "MalformedXML"},
      {"<Delete><Object></Object></Delete>", "MalformedXML"},
      {"<Delete><Object><Key></Key></Object></Delete>", "MalformedXML"},
      {"<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>", "MalformedXML"},
      {"<Delete><Object><Key>a<b/></Key></Object></Delete>", "MalformedXML"},
      {"<Delete><Object><Key>a</Key></Object>", "MalformedXML"},
      {"<Remove><Object><Key>a</Key></Object></Remove>", "MalformedXML"},
      {"<Delete><Object><Key>a</Key></Object></Delete><Delete/>", "MalformedXML"},
      {"<!DOCTYPE x [<!ENTITY a \"b\">]><Delete><Object><Key>&a;</Key></Object></Delete>", "MalformedXML"},
      {too_many, "MalformedXML"},
      {std::string(kMaxXmlBody + 1, ' '), "MaxMessageLengthExceeded"},
  };
  for (const auto& [body, expected] : cases) EXPECT_EQ(outcome(parse_delete(body)), expected) << body.substr(0, 80);
}

TEST(XmlRequest, CompleteUpload) {
  const auto parsed = parse_complete_upload(
      "<CompleteMultipartUpload><Part><PartNumber>2</PartNumber><ETag>\"b\"</ETag></Part>"
      "<Part><ETag>a</ETag><PartNumber>1</PartNumber><ChecksumCRC32>DUoRhQ==</ChecksumCRC32></Part>"
      "</CompleteMultipartUpload>");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ((*parsed)[0].number, 2u);
  EXPECT_EQ((*parsed)[0].etag, "b");
  EXPECT_EQ((*parsed)[1].checksum, std::pair(ChecksumKind::crc32, std::string("DUoRhQ==")));
  EXPECT_EQ(outcome(parse_complete_upload("<CompleteMultipartUpload/>")), "MalformedXML");
  for (const char* number : {"0", "10001"}) {
    EXPECT_EQ(outcome(parse_complete_upload("<CompleteMultipartUpload><Part><PartNumber>" + std::string(number) +
                                            "</PartNumber><ETag>a</ETag></Part></CompleteMultipartUpload>")),
              "InvalidArgument");
  }
}

TEST(XmlRequest, CreateBucket) {
  EXPECT_EQ(*parse_create_bucket(""), "");
  EXPECT_EQ(*parse_create_bucket("<CreateBucketConfiguration><LocationConstraint>eu-west-1</LocationConstraint>"
                                 "</CreateBucketConfiguration>"),
            "eu-west-1");
  EXPECT_EQ(outcome(parse_create_bucket("<x/>")), "MalformedXML");
}

TEST(XmlResponse, EveryNameOfAListingSurvivesUrlEncoding) {
  const std::vector<std::string> names = {"Blabla_50%.jpg", "a+b", "a b", "x\x10y", "<&>", "\xff"};
  ListView view;
  view.url_encoding = true;
  view.bucket = "b";
  object::ListResult result;
  for (const auto& name : names) {
    result.objects.emplace_back().key = name;
    result.common_prefixes.push_back(name + "/");
  }
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(render_list(view, result).c_str()));
  const auto root = document.document_element();
  EXPECT_STREQ(root.child_value("EncodingType"), "url");
  std::vector<std::string> keys;
  std::vector<std::string> prefixes;
  for (const auto& node : root.children("Contents")) keys.push_back(*uri_decode(node.child_value("Key"), true));
  for (const auto& node : root.children("CommonPrefixes"))
    prefixes.push_back(*uri_decode(node.child_value("Prefix"), true));
  EXPECT_EQ(keys, names);
  EXPECT_EQ(prefixes, result.common_prefixes);
}

TEST(XmlResponse, ListVersionsDifferInPosition) {
  ListView view;
  view.version = 1;
  view.marker = "m";
  object::ListResult result;
  result.truncated = true;
  result.next = "n";
  std::string text = render_list(view, result);
  EXPECT_NE(text.find("<Marker>m</Marker><NextMarker>n</NextMarker>"), std::string::npos) << text;
  view.version = 2;
  view.next_token = "token";
  text = render_list(view, result);
  EXPECT_NE(text.find("<KeyCount>0</KeyCount><NextContinuationToken>token</NextContinuationToken>"), std::string::npos)
      << text;
}

TEST(XmlResponse, ErrorsAndQuietDeletes) {
  const std::string error = render_error(S3Error(Code::NoSuchKey), "/b/<k>", "r", "h");
  EXPECT_NE(error.find("<Error><Code>NoSuchKey</Code>"), std::string::npos);
  EXPECT_NE(error.find("<Resource>/b/&lt;k&gt;</Resource><RequestId>r</RequestId>"), std::string::npos);
  const std::vector<DeleteOutcome> outcomes = {{"gone", std::nullopt}, {"denied", S3Error(Code::AccessDenied)}};
  const std::string quiet = render_delete(outcomes, true);
  EXPECT_EQ(quiet.find("gone"), std::string::npos);
  EXPECT_NE(quiet.find("<Error><Key>denied</Key><Code>AccessDenied</Code>"), std::string::npos);
  EXPECT_NE(render_delete(outcomes, false).find("<Deleted><Key>gone</Key></Deleted>"), std::string::npos);
}

}  // namespace
}  // namespace cairn::s3
