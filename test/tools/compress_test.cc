// How pif-compress stores records (docs/FORMAT.md "Compressed files"), and what becomes of damaged ones.
#include <random>

#include <catch2/catch.hpp>

#include "../../tools/pif_compress/codec.h"
#include "../../tools/pif_compress/stored.h"
#include "pif/base/limits.h"

namespace pif::compress {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Dictionary dictionary(std::optional<int> level) {
  std::string bytes = "one two three four five six seven eight nine ten: what all records begin with";
  auto made = Dictionary::make(bytes, level);
  REQUIRE(made);
  return std::move(*made);
}

// Empty ones too.
std::vector<Bytes> some_records(std::mt19937& rng, std::size_t count) {
  std::vector<Bytes> records;
  for (std::size_t i = 0; i < count; ++i) {
    std::string text = rng() % 3 == 0 ? "one two three four five six seven " : "";
    for (std::size_t k = rng() % 5 * (rng() % 50); k > 0; --k) text += static_cast<char>('a' + rng() % 20);
    records.push_back(bytes_of(rng() % 4 == 0 ? "" : text));
  }
  return records;
}

std::vector<Bytes> stored_by_themselves(const std::vector<Bytes>& records) {
  const Dictionary words = dictionary(3);
  Encoder encoder(words, 3);
  std::vector<Bytes> stored(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) REQUIRE(encoder.add(records[i], stored[i]));
  return stored;
}

// All of them one chain.
std::vector<Bytes> stored_in_a_chain(const std::vector<Bytes>& records) {
  const Dictionary words = dictionary(3);
  Encoder encoder(words, 3);
  std::uint64_t bytes = 0;
  for (const Bytes& record : records) bytes += record.size();
  encoder.begin_chain(bytes);
  std::vector<Bytes> stored(records.size());
  for (std::size_t i = 0; i < records.size(); ++i)
    REQUIRE(encoder.add_to_chain(records[i], i + 1 == records.size(), stored[i]));
  return stored;
}

Bytes joined(const std::vector<Bytes>& records) {
  Bytes all;
  for (const Bytes& record : records) all.insert(all.end(), record.begin(), record.end());
  return all;
}

// Behind `out` what is there comes back; an error ends it.
Status decode_chain(const std::vector<Bytes>& stored, Row first, Bytes& out) {
  const Dictionary words = dictionary({});
  Decoder decoder(words);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const Status done = decoder.add_of_chain(stored[i], first + i, out);
    if (!done) return done;
  }
  return {};
}

TEST_CASE("compress: records by themselves come back in any order") {
  std::mt19937 rng(1);
  const auto records = some_records(rng, 300);
  const auto stored = stored_by_themselves(records);
  const Dictionary words = dictionary({});
  Decoder decoder(words);
  for (std::size_t i = records.size(); i-- > 0;) {
    Bytes out = bytes_of("before");
    REQUIRE(decoder.add(stored[i], out));
    CHECK(out == joined({bytes_of("before"), records[i]}));
    if (!records[i].empty()) CHECK(Decoder::size_of(stored[i]) == records[i].size());
  }
}

TEST_CASE("compress: chains of any length come back, whichever of their records are empty") {
  std::mt19937 rng(2);
  for (std::size_t length = 1; length <= kChainMax; ++length) {
    const auto records = some_records(rng, length);
    const auto stored = stored_in_a_chain(records);
    for (std::size_t i = 0; i < length; ++i) CHECK(place_of(stored[i]) == (stored[i].size() > kCheckBytes ? i : 0));
    Bytes out;
    REQUIRE(decode_chain(stored, 17, out));
    CHECK(out == joined(records));
  }
}

TEST_CASE("compress: a record of a chain follows only the one that it followed") {
  std::mt19937 rng(3);
  auto stored = stored_in_a_chain(some_records(rng, 10));
  std::swap(stored[4], stored[5]);
  Bytes out;
  CHECK(decode_chain(stored, 0, out).error().text.find("the record that it follows") != std::string::npos);
  stored.erase(stored.begin());
  CHECK(!decode_chain(stored, 0, out));
}

TEST_CASE("compress: a changed byte is found, or changes nothing") {
  std::mt19937 rng(4);
  const auto records = some_records(rng, 40);
  const auto stored = stored_by_themselves(records);
  const auto chain = stored_in_a_chain(records);
  const Dictionary words = dictionary({});
  Decoder decoder(words);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t i = rng() % records.size();
    Bytes changed = stored[i], out;
    if (changed.empty()) continue;
    changed[rng() % changed.size()] ^= std::byte(1u << rng() % 8);
    if (decoder.add(changed, out)) CHECK(out == records[i]);
    auto other = chain;
    other[i][rng() % other[i].size()] ^= std::byte(1u << rng() % 8);
    out.clear();
    if (decode_chain(other, 0, out)) CHECK(out == joined(records));
  }
}

TEST_CASE("compress: what is cut short is damaged") {
  const auto stored = stored_by_themselves({bytes_of("one two three four, and more than that")}).front();
  const Dictionary words = dictionary({});
  Decoder decoder(words);
  for (std::size_t size = 1; size < stored.size(); ++size) {
    Bytes out;
    CHECK(decoder.add(std::span(stored).first(size), out).error().code == Code::kCorrupt);
  }
}

TEST_CASE("compress: the longest record is kept as it is where it does not become smaller") {
  std::mt19937_64 rng(5);
  Bytes longest(kRecordLengthMax);
  for (std::byte& byte : longest) byte = std::byte(rng() & 0xff);
  CHECK(stored_by_themselves({longest}).front() == longest);
  CHECK(stored_in_a_chain({longest}).front() == longest);
  longest.pop_back();
  const Dictionary none;
  Encoder encoder(none, 1);
  Bytes out;
  CHECK(encoder.add(longest, out).error().code == Code::kUnsupported);
}

TEST_CASE("compress: the example of FORMAT.md") {
  const Dictionary none;
  Encoder encoder(none, 3);
  Bytes out;
  REQUIRE(encoder.add(bytes_of("aaaaaaaa\n"), out));
  std::string text;
  for (const std::byte byte : out) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
    text += ' ';
  }
  CHECK(text == "02 96 20 09 49 00 00 61 61 61 61 61 61 61 61 0A ");
}

TEST_CASE("compress: a description that cannot be is refused") {
  Attributes attributes;
  CHECK(description_of(attributes, "/a").error().code == Code::kInvalid);
  for (const std::string& bytes : {std::string(), std::string(3, '\0'), std::string("\x01\0\0\0", 4)}) {
    attributes[std::string(kDescriptionAttribute)] = bytes;
    CHECK(description_of(attributes, "/a").error().code == Code::kCorrupt);
  }
  attributes[std::string(kDescriptionAttribute)] = std::string("\x02\0\0\0", 4);
  CHECK(description_of(attributes, "/a").error().code == Code::kUnsupported);
}

}  // namespace
}  // namespace pif::compress
