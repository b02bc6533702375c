#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "../../tools/pif_sort/keys/keys.h"

namespace pif::sort {
namespace {

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

KeyMaker maker_of(std::vector<std::string> keys, const Format& format) {
  KeyOptions options;
  options.keys = std::move(keys);
  auto maker = KeyMaker::make(options, format);
  INFO((maker ? std::string() : maker.error().to_string()));
  REQUIRE(maker);
  return *maker;
}

int sign(int value) { return value < 0 ? -1 : value > 0 ? 1 : 0; }

int compare(const KeyMaker& maker, const std::string& a, const std::string& b) {
  std::string x, y;
  if (!maker.make_key(bytes_of(a), x) || !maker.make_key(bytes_of(b), y)) return 99;
  return sign(x.compare(y));
}

template <typename T>
std::string raw(T value, bool big_endian) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  if (big_endian) std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

template <typename T>
void check_numbers(char type) {
  for (const bool big_endian : {false, true}) {
    for (const bool reverse : {false, true}) {
      const std::string spec =
          fmt::format("3:{}:{}{}{}", sizeof(T), type, big_endian ? "be" : "le", reverse ? "r" : "");
      const KeyMaker maker = maker_of({spec}, Format::fixed(20));
      REQUIRE(rc::check(spec, [&] {
        const T a = *rc::gen::arbitrary<T>();
        const T b = *rc::gen::weightedOneOf<T>({{3, rc::gen::arbitrary<T>()}, {1, rc::gen::just(a)}});
        const auto record = [&](T value) { return "xyz" + raw(value, big_endian) + std::string(17 - sizeof(T), 'z'); };
        const int expected = a < b ? -1 : b < a ? 1 : 0;
        RC_ASSERT(compare(maker, record(a), record(b)) == (reverse ? -expected : expected));
      }));
    }
  }
}

std::string error_of(std::vector<std::string> keys, const Format& format) {
  KeyOptions options;
  options.keys = std::move(keys);
  const auto maker = KeyMaker::make(options, format);
  return maker ? std::string() : maker.error().to_string();
}

// Of options for keys that say nothing of their own.
std::string error_with(void (*set)(KeyOptions&), std::vector<std::string> keys) {
  KeyOptions options;
  options.keys = std::move(keys);
  set(options);
  const auto maker = KeyMaker::make(options, Format::lines());
  return maker ? std::string() : maker.error().to_string();
}

int compare_reversed(const std::string& key, const std::string& a, const std::string& b) {
  KeyOptions options;
  options.keys = {key};
  options.reverse = true;
  const auto maker = KeyMaker::make(options, Format::fixed(4));
  REQUIRE(maker);
  return compare(*maker, a, b);
}

}  // namespace

TEST_CASE("-r is for a key by position that says nothing of its own") {
  CHECK(compare_reversed("0:1", "a...", "b...") == 1);
  CHECK(compare_reversed("0:1r", "a...", "b...") == 1);
  CHECK(compare_reversed("0:1:b", "a...", "b...") == -1);
  CHECK(compare_reversed("0:1:u", "a...", "b...") == -1);
  CHECK(compare_reversed("0:1:ur", "a...", "b...") == 1);
}

TEST_CASE("what no key by position can heed is not ignored") {
  const auto numeric = [](KeyOptions& options) { options.numeric = true; };
  const auto blanks = [](KeyOptions& options) { options.skip_blanks = true; };
  const auto separator = [](KeyOptions& options) { options.separator = ','; };
  CHECK(error_with(numeric, {"0:1"}).find("-n is for keys by field") != std::string::npos);
  CHECK(error_with(blanks, {"0:1", "1:1:u"}).find("-b is for keys by field") != std::string::npos);
  CHECK(error_with(separator, {"0:1"}).find("-t is for keys by field") != std::string::npos);
  const auto several = [](KeyOptions& options) { options.version = options.fold = options.reverse = true; };
  CHECK(error_with(several, {"0:1"}).find("-fV is for keys by field") != std::string::npos);
  for (const auto& set : {+numeric, +blanks, +separator, +several}) {
    CHECK(error_with(set, {"0:1", "2"}).empty());
    CHECK(error_with(set, {}).empty());
  }
}

TEST_CASE("letters that contradict one another are refused, as sort(1) refuses them") {
  const Format lines = Format::lines();
  for (const char* const key : {"1gn", "1g,1n", "1bgr,1n"})
    CHECK(error_of({key}, lines).find(fmt::format("key \"{}\": options '-gn' are incompatible", key)) !=
          std::string::npos);
  CHECK(error_of({"1Vn"}, lines).find("'-nV' are") != std::string::npos);
  CHECK(error_of({"1fgn"}, lines).find("'-fgn' are") != std::string::npos);
  CHECK(error_of({"1din"}, lines).find("'-dn' are") != std::string::npos);
  CHECK(error_of({"1,1Mi"}, lines).find("'-iM' are") != std::string::npos);
  CHECK(error_of({"1hM"}, lines).find("'-hM' are") != std::string::npos);
  for (const char* const key : {"1dfi", "1Vdf", "1iV", "1fM", "1fn", "1nn", "1bhr", "1b,1gb"})
    CHECK(error_of({key}, lines).empty());
}

TEST_CASE("letters for all keys contradict one another only where a key has no letters of its own") {
  const auto both = [](KeyOptions& options) { options.numeric = options.general_numeric = true; };
  CHECK(error_with(both, {}).find("options '-gn' are incompatible") != std::string::npos);
  CHECK(error_with(both, {"1"}).find("options '-gn' are incompatible") != std::string::npos);
  CHECK(error_with(both, {"1b", "2r"}).empty());
}

TEST_CASE("each letter for all keys is heeded by the whole record, too, of any format") {
  const auto order_of = [](bool KeyLetters::*letter, const std::string& a, const std::string& b) {
    KeyOptions options;
    options.*letter = true;
    return compare(*KeyMaker::make(options, Format::fixed(4)), a, b);
  };
  CHECK(order_of(&KeyLetters::numeric, " 10x", "  9x") == 1);
  CHECK(order_of(&KeyLetters::general_numeric, "1e2 ", "99  ") == 1);
  CHECK(order_of(&KeyLetters::human_numeric, "1K  ", "900 ") == 1);
  CHECK(order_of(&KeyLetters::month, "feb ", "JAN ") == 1);
  CHECK(order_of(&KeyLetters::version, "a10 ", "a9  ") == 1);
  CHECK(order_of(&KeyLetters::fold, "b...", "C...") == -1);
  CHECK(order_of(&KeyLetters::only_dictionary, "-b..", "a...") == 1);
  CHECK(order_of(&KeyLetters::only_printing,
                 "\x01"
                 "b..",
                 "a...") == 1);
}

TEST_CASE("-z wants records that end in a zero byte") {
  KeyOptions options;
  options.null_ended = true;
  CHECK(KeyMaker::make(options, Format::delimited(0)));
  for (const Format& format : {Format::lines(), Format::fixed(3), Format::variable()}) {
    const auto maker = KeyMaker::make(options, format);
    REQUIRE(!maker);
    CHECK(maker.error().text.find("pif put --delimited '\\0'") != std::string::npos);
  }
}

TEST_CASE("a place beyond 4 GiB is named in full") {
  const KeyMaker maker = maker_of({"4294967290:8:u"}, Format::lines());
  std::string key;
  const Status made = maker.make_key(bytes_of("short"), key);
  REQUIRE_FALSE(made);
  CHECK(made.error().text.find("4294967290 to 4294967298") != std::string::npos);
}

TEST_CASE("keys of integers of any width and byte order compare as the integers do") {
  check_numbers<std::uint8_t>('u');
  check_numbers<std::uint16_t>('u');
  check_numbers<std::uint32_t>('u');
  check_numbers<std::uint64_t>('u');
  check_numbers<std::int8_t>('i');
  check_numbers<std::int16_t>('i');
  check_numbers<std::int32_t>('i');
  check_numbers<std::int64_t>('i');
}

TEST_CASE("keys of floats compare as the floats do") {
  const KeyMaker floats = maker_of({"0:4:f"}, Format::fixed(4));
  const KeyMaker doubles = maker_of({"0:8:fbe"}, Format::fixed(8));
  const double values[] = {-INFINITY, -1e300, -2.5, -1e-300, 0.0, 1e-300, 0.5, 2.5, 1e300, INFINITY};
  for (const double a : values) {
    for (const double b : values) {
      REQUIRE(compare(doubles, raw(a, true), raw(b, true)) == (a < b ? -1 : a > b ? 1 : 0));
      const auto x = static_cast<float>(a), y = static_cast<float>(b);
      if (std::signbit(x) == std::signbit(y) || x != y)
        REQUIRE(compare(floats, raw(x, false), raw(y, false)) == (x < y ? -1 : x > y ? 1 : 0));
    }
  }
}

TEST_CASE("numbers in text compare by value, whatever their form") {
  const KeyMaker maker = maker_of({"1n"}, Format::lines());
  REQUIRE(rc::check("integers", [&] {
    const auto a = *rc::gen::inRange<int>(-2000, 2000), b = *rc::gen::inRange<int>(-2000, 2000);
    const auto form = [](int value) {
      const std::string zeros(*rc::gen::inRange<std::size_t>(0, 3), '0');
      return fmt::format("{}{}{}{}{}", std::string(*rc::gen::inRange<std::size_t>(0, 2), ' '), value < 0 ? "-" : "",
                         zeros, std::abs(value), *rc::gen::element<std::string>("", ".", ".0", " x"));
    };
    RC_ASSERT(compare(maker, form(a), form(b)) == sign(a - b));
  }));
  const char* const rising[] = {"-100",  "-10.5", "-10.49", "-1",   "-.5", "-0.25", "0",
                                "0.001", ".5",    "1.5",    "1.55", "9",   "10"};
  for (std::size_t i = 0; i < std::size(rising); ++i) {
    for (std::size_t j = 0; j < std::size(rising); ++j)
      REQUIRE(compare(maker, rising[i], rising[j]) == sign(static_cast<int>(i) - static_cast<int>(j)));
  }
  for (const char* zero : {"", "abc", "-", "-0", "0.000", "--5", "+3"}) REQUIRE(compare(maker, zero, "0") == 0);
}

TEST_CASE("several keys decide one after another, each in its direction") {
  KeyOptions options;
  options.separator = ',';
  options.keys = {"2,2r", "1,1"};
  const KeyMaker maker = *KeyMaker::make(options, Format::lines());
  REQUIRE(compare(maker, "a,x\n", "a,y\n") == 1);
  REQUIRE(compare(maker, "a,x\n", "b,x\n") == -1);
  REQUIRE(compare(maker, "a,x\n", "a,x,more\n") == 0);
  REQUIRE(compare(maker, "a,x\n", "a,xx\n") == 1);
  REQUIRE(compare(maker, std::string("a,x\0\n", 5), "a,x\n") == -1);
}

TEST_CASE("a wrong key is refused with what is wrong about it") {
  const Format fixed = Format::fixed(10);
  CHECK(error_of({"8:4"}, fixed).find("records have 10 bytes") != std::string::npos);
  CHECK(error_of({"0:3:u"}, fixed).find("1, 2, 4 or 8 bytes") != std::string::npos);
  CHECK(error_of({"0:2:f"}, fixed).find("4 or 8 bytes") != std::string::npos);
  CHECK(error_of({"0:0"}, fixed).find("at least one byte") != std::string::npos);
  CHECK(error_of({"0:4:x"}, fixed).find("b, u, i or f") != std::string::npos);
  CHECK(error_of({"0"}, fixed).find("counted from 1") != std::string::npos);
  CHECK(error_of({"1.0"}, fixed).find("counted from 1") != std::string::npos);
  CHECK(error_of({"1,2q"}, fixed).find("\"q\" means nothing") != std::string::npos);
  CHECK(error_of({""}, fixed).find("a number is needed") != std::string::npos);
  CHECK(error_of({"99999999999"}, fixed).find("a number is needed") != std::string::npos);
}

TEST_CASE("keys of 4 GiB together are refused: their length would be taken for 0") {
  const Format longest = Format::fixed(kRecordLengthMax);
  const std::string whole = fmt::format("0:{}", kRecordLengthMax);
  CHECK(error_of(std::vector<std::string>(255, whole), longest).empty());
  CHECK(error_of(std::vector<std::string>(256, whole), longest).find("4294967296 bytes together; 4294967295") !=
        std::string::npos);
}

}  // namespace pif::sort
