// What pif-search finds in a batch, beside RE2 and std::string::find on each record.
#include <random>

#include <re2/re2.h>
#include <catch2/catch.hpp>

#include "../../tools/pif_search/matcher.h"

namespace pif::search {
namespace {

tool::RowBatch batch_of(const std::vector<std::string>& records) {
  tool::RowBatch batch;
  for (const std::string& record : records) {
    batch.lengths.push_back(static_cast<std::uint32_t>(record.size()));
    const auto bytes = std::as_bytes(std::span(record));
    batch.data.insert(batch.data.end(), bytes.begin(), bytes.end());
  }
  batch.count = records.size();
  return batch;
}

std::vector<std::uint64_t> found(const Query& query, const std::vector<std::string>& records,
                                 const Format& format = Format::lines()) {
  const auto matcher = Matcher::compile(query, format);
  INFO((matcher ? "" : matcher.error().text));
  REQUIRE(matcher);
  auto scanner = Scanner::open(*matcher);
  REQUIRE(scanner);
  const auto all = scanner->scan(batch_of(records));
  REQUIRE(all);
  return *all;
}

std::string random_text(std::mt19937& rng, std::size_t length, std::string_view letters) {
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += letters[rng() % letters.size()];
  return text;
}

// Records of many lengths, so that matches are everywhere in the vectors of whoever looks for them.
std::vector<std::string> random_records(std::mt19937& rng) {
  std::vector<std::string> records;
  for (std::size_t i = 0; i < 60; ++i)
    records.push_back(random_text(rng, rng() % 4 == 0 ? rng() % 200 : rng() % 12, "abcAB 1\xe9_") + "\n");
  return records;
}

std::string random_pattern(std::mt19937& rng) {
  constexpr std::array<std::string_view, 22> kParts = {
      "a", "b", "ab",  "abc", "a*", "b+",        "[ab]", "[^a]", "\\d", "\\w+", "(a|b)",
      "^", "$", "\\b", ".",   "c?", "(?:ab|c1)", "_",    "1 ",   "\\s", "\\S",  "a{2}"};
  std::string pattern;
  for (std::size_t i = 0, count = 1 + rng() % 5; i < count; ++i) pattern += kParts[rng() % kParts.size()];
  return pattern;
}

}  // namespace

TEST_CASE("what RE2 finds in a record alone is found in a batch, and nothing else") {
  std::mt19937 rng(11);
  for (int round = 0; round < 2000; ++round) {
    Query query;
    query.patterns = random_pattern(rng);
    if (rng() % 3 == 0) query.patterns += "\n" + random_pattern(rng);
    query.ignore_case = rng() % 4 == 0;
    query.invert = rng() % 8 == 0;
    RE2::Options options;
    options.set_encoding(RE2::Options::EncodingLatin1);
    options.set_case_sensitive(!query.ignore_case);
    options.set_log_errors(false);
    std::string whole = "(?:" + query.patterns + ")";
    if (const auto cut = whole.find('\n'); cut != std::string::npos) whole.replace(cut, 1, ")|(?:");
    const RE2 pattern(whole, options);
    if (!pattern.ok()) continue;
    const auto records = random_records(rng);
    std::vector<std::uint64_t> wanted;
    for (std::uint64_t i = 0; i < records.size(); ++i) {
      const bool matches = RE2::PartialMatch(records[i].substr(0, records[i].size() - 1), pattern);
      if (matches != query.invert) wanted.push_back(i);
    }
    INFO(query.patterns);
    CHECK(found(query, records) == wanted);
  }
}

TEST_CASE("fixed strings are found wherever they are, and not across records") {
  std::mt19937 rng(12);
  for (int round = 0; round < 1000; ++round) {
    Query query;
    query.fixed = true;
    std::vector<std::string> strings;
    for (std::size_t i = 0, count = 1 + rng() % 3; i < count; ++i) {
      strings.push_back(random_text(rng, 1 + rng() % 5, "abc 1."));
      query.patterns += (i == 0 ? "" : "\n") + strings.back();
    }
    const auto records = random_records(rng);
    std::vector<std::uint64_t> wanted;
    for (std::uint64_t i = 0; i < records.size(); ++i) {
      const auto has = [&](const std::string& text) { return records[i].find(text) != std::string::npos; };
      if (std::any_of(strings.begin(), strings.end(), has)) wanted.push_back(i);
    }
    CHECK(found(query, records) == wanted);
  }
  Query query{.patterns = "bc", .fixed = true};
  CHECK(found(query, {"ab", "cb", "abc"}, Format::variable()) == std::vector<std::uint64_t>{2});
}

TEST_CASE("a byte of UTF-8 is no letter of Latin 1, whatever its case") {
  Query query{.patterns = "\xc3\xa9", .ignore_case = true};  // a small e with an acute accent
  CHECK(found(query, {"\xc3\xa9\n", "\xe3\xa9\n"}) == std::vector<std::uint64_t>{0});
}

TEST_CASE("the longest of the matches at a place counts, and says which pattern it is of") {
  const Query query{.patterns = "[0-9]+\n[0-9a-f]+\n[0-9]+", .only_match = true, .tag = true};
  const auto matcher = Matcher::compile(query, Format::lines());
  REQUIRE(matcher);
  auto scanner = Scanner::open(*matcher);
  REQUIRE(scanner);
  const auto matches = scanner->matches_in("x12 1a\n");
  REQUIRE(matches);
  REQUIRE(matches->size() == 2);
  CHECK(std::tuple((*matches)[0].begin, (*matches)[0].end, (*matches)[0].pattern) == std::tuple(1u, 3u, 0u));
  CHECK(std::tuple((*matches)[1].begin, (*matches)[1].end, (*matches)[1].pattern) == std::tuple(4u, 6u, 1u));
}

TEST_CASE("what is no pattern is said") {
  for (const char* text : {"(", "a\\1", "[z-a]", "a**b("}) {
    const auto matcher = Matcher::compile({.patterns = text}, Format::lines());
    REQUIRE(!matcher);
    CHECK(matcher.error().code == Code::kInvalid);
    CHECK(matcher.error().text.find(text) != std::string::npos);
  }
}

}  // namespace pif::search
