// What texts are worth in the orders of sort(1): the orders below are what LC_ALL=C sort -s of coreutils 9.1 makes of
// these texts; rc compares with plain comparisons of two texts.
#include "../../tools/pif_sort/keys/encode.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>

#include <fmt/format.h>
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "../../tools/pif_sort/keys/keys.h"

namespace pif::sort {
namespace {

using Encoder = void (*)(std::string_view, std::string&);
using Texts = std::vector<std::string>;

std::string encoded(Encoder encoder, const std::string& text) {
  std::string out;
  encoder(text, out);
  return out;
}
int sign(int value) { return (value > 0) - (value < 0); }

// groups: in rising order; the texts of each are equal.
void check_order(const std::vector<Texts>& groups, const std::function<std::string(const std::string&)>& key) {
  std::vector<std::pair<std::string, std::size_t>> all;
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (const std::string& text : groups[i]) all.emplace_back(text, i);
  for (const auto& [a, i] : all) {
    for (const auto& [b, j] : all) {
      INFO("'" << a << "' and '" << b << "'");
      REQUIRE(sign(key(a).compare(key(b))) == (i < j ? -1 : i > j ? 1 : 0));
    }
  }
}
void check_order(const std::vector<Texts>& groups, Encoder encoder) {
  check_order(groups, [&](const std::string& text) { return encoded(encoder, text); });
}
// The key of a line with these options, as KeyMaker makes it.
void check_order(const std::vector<Texts>& groups, KeyOptions options) {
  const auto maker = KeyMaker::make(options, Format::lines());
  REQUIRE(maker);
  check_order(groups, [&](const std::string& text) {
    std::string key;
    REQUIRE(maker->make_key(std::as_bytes(std::span(text)), key));
    return key;
  });
}

std::string any_of(std::string_view characters, std::size_t length_max) {
  std::string text(*rc::gen::inRange<std::size_t>(0, length_max + 1), ' ');
  for (char& c : text) c = characters[*rc::gen::inRange<std::size_t>(0, characters.size())];
  return text;
}
std::string any_digits() {
  const auto length = *rc::gen::weightedElement<std::size_t>({{4, 3}, {2, 9}, {2, 20}, {1, 130}});
  return any_of(*rc::gen::element("0123456789", "09", "0"), length);
}
std::string any_number() {
  return *rc::gen::element("", " ", "\t ", "x") + std::string(*rc::gen::element("", "-", "--", "+")) + any_digits() +
         *rc::gen::element("", ".", ".0", ".5") + any_digits() +
         *rc::gen::element("", "K", "k", "M", "m", "Y", "e5", " K");
}

std::string zero_padded(std::string key) {
  key.resize(kWholeBytes, '\0');
  return key;
}
// What encode.h says that the sorter relies on.
void check_whole(const std::string& a, const std::string& b) {
  const auto last = [](const std::string& key) { return zero_padded(key)[kWholeBytes - 1]; };
  for (const std::string& key : {a, b}) RC_ASSERT(key.size() <= kWholeBytes || last(key) != '\0');
  const bool is_one_whole = last(a) == '\0' || last(b) == '\0';
  RC_ASSERT(!is_one_whole || sign(a.compare(b)) == sign(zero_padded(a).compare(zero_padded(b))));
  RC_ASSERT(a == b || (b.substr(0, a.size()) != a && a.substr(0, b.size()) != b));
}

// As sort -V compares, on two texts.
int order_at(const std::string& text, std::size_t at) {
  if (at == text.size()) return -1;
  const auto c = static_cast<unsigned char>(text[at]);
  if (std::isdigit(c) != 0) return 0;
  if (std::isalpha(c) != 0) return c;
  return c == '~' ? -2 : c + 256;
}
std::string number_at(const std::string& text, std::size_t& at) {
  while (at < text.size() && text[at] == '0') ++at;
  const std::size_t from = at;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0) ++at;
  return text.substr(from, at - from);
}
int compare_runs(const std::string& a, const std::string& b) {
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    const auto in_run = [](const std::string& text, std::size_t at) {
      return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) == 0;
    };
    for (; in_run(a, i) || in_run(b, j); ++i, ++j)
      if (order_at(a, i) != order_at(b, j)) return sign(order_at(a, i) - order_at(b, j));
    const std::string x = number_at(a, i), y = number_at(b, j);
    if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
    if (x != y) return sign(x.compare(y));
  }
  return 0;
}

}  // namespace

TEST_CASE("-n: numbers of a text compare by value, as exactly as they are written") {
  const std::string long_number(126, '9'), longer_number = "1" + std::string(126, '0');
  check_order({{"-" + longer_number},
               {"-" + long_number},
               {"-100.5"},
               {"-100", "-00100.00"},
               {"-10"},
               {"-9.99"},
               {"-0.5", "-.5", " \t-.50"},
               {"-.05"},
               {"", "-", "x", "0", "-0", ".", "--5", "+5", "-.0", "\n0"},
               {".0005"},
               {".05", "0.050"},
               {".5", "0.5x", "\n.5"},
               {"1", "1.", "1.0", "001", "1e5", "1,5"},
               {"1.01"},
               {"1.1", "1.10"},
               {"9"},
               {"10"},
               {"12345678901234567890"},
               {"12345678901234567890.1"},
               {"12345678901234567891"},
               {long_number},
               {longer_number},
               {longer_number + ".1"}},
              &add_number);
}

TEST_CASE("-n: a number of 18 digits has a key of 11 bytes, one of 2 has 3, and 0 has one") {
  CHECK(encoded(&add_number, "123456789012345678").size() == kWholeBytes);
  CHECK(encoded(&add_number, "-12345678.9012345678").size() == kWholeBytes);
  CHECK(encoded(&add_number, "12345678901234567800000").size() == kWholeBytes);
  CHECK(encoded(&add_number, "00012.00") == std::string("\x83\x0d\0", 3));
  CHECK(encoded(&add_number, "-12") == "\x7c\xf2\xff");
  CHECK(encoded(&add_number, "-0.0") == "\x80");
}

TEST_CASE("-h: the sign and the suffix come before the number") {
  check_order({{"-1Y"},
               {"-1M"},
               {"-2K", "-2k"},
               {"-1K"},
               {"-1000"},
               {"-1R", "-1m"},
               {"0", "0K", "-0G", "", "K", "x5", ".K"},
               {".5"},
               {"5", "5 K", "5m", "5R", "5Q"},
               {"900"},
               {".5K"},
               {"1K", "1k", "1.K", "1Ki", "  1K"},
               {"2000K"},
               {"1M"},
               {"1G"},
               {"1T"},
               {"1P"},
               {"1E"},
               {"1Z"},
               {"1Y"}},
              &add_human_number);
}

TEST_CASE("-g: no number, NaNs, then numbers of any form") {
  check_order({{"", " ", "x", ".", "-", "e5", "+-1", "-e", "_1"},
               {"nan", "NaN", " nan(", "nanx", "nan()"},
               {"-nan"},
               {"nan(0x100)"},
               {"nan(1)"},
               {"nan(2)"},
               {"-nan(0x7)"},
               {"-inf", "-INFINITY", "-1e5000"},
               {"-1e4932"},
               {"-2", "-0x2", "-2.0e0"},
               {"-1.5", "-1.5.7", "-1.5."},
               {"-1e-4940"},
               {"0", "-0", "0x", "+0", "1e-5000", "0e9"},
               {"0x1p-16445"},
               {"0x1p-16383"},
               {"0x1p-16382"},
               {"1e-10"},
               {".5", "0x.8", "5e-1", "\v+.5"},
               {"1", "1e", "1e+", "1_0", "1,5", "0x1p"},
               {"18446744073709551615"},
               {"18446744073709551616", "18446744073709551617", "0x1p64"},
               {"1e4932"},
               {"inf", "Infinity", "infi", "1e5000"}},
              &add_general_number);
}

TEST_CASE("-M: months by their first three letters, behind what is no month") {
  check_order({{"", " ", "JA", "-JAN", "\vJAN", "J AN"},
               {"JAN", "jan", " \tJanuary", "janx", "\nJAN"},
               {"Feb"},
               {"mar"},
               {"APR"},
               {"may"},
               {"jun"},
               {"jul"},
               {"aug"},
               {"sep"},
               {"oct"},
               {"nov"},
               {"DECEMBER"}},
              &add_month);
}

TEST_CASE("-V: versions by runs and numbers, and by file suffixes among equals") {
  check_order({{""},
               {"."},
               {".."},
               {".~"},
               {".a~"},
               {".a"},
               {".a.b"},
               {".b"},
               {"..a"},
               {"...a"},
               {"..1"},
               {"~~"},
               {"~"},
               {"0", "00"},
               {"1~"},
               {"1", "01"},
               {"1a"},
               {"A"},
               {"a~"},
               {"a~.c"},
               {"a", "a0", "a00"},
               {"a0.c", "a00.c"},
               {"a.c"},
               {"a1", "a01"},
               {"a1.~1~"},
               {"a1.c~"},
               {"a1.c", "a01.c"},
               {"a1.tar.gz"},
               {"a1-1"},
               {"a2.c"},
               {"a10.c"},
               {"a100000000000000000000"},
               {"a100000000000000000001"},
               {"aa"},
               {"a b"},
               {"a."},
               {"a.1"},
               {"a\x81"}},
              &add_version);
}

TEST_CASE("-f, -d and -i change what of a text counts") {
  KeyOptions fold, dictionary, printing, both;
  fold.fold = dictionary.only_dictionary = printing.only_printing = both.fold = both.only_dictionary = true;
  check_order({{""}, {"A", "a"}, {"aB", "Ab"}, {"B", "b"}, {"Z", "z"}, {"["}, {"_"}, {"{"}}, fold);
  check_order({{"", "-", "_\x80"}, {"\t"}, {" a"}, {"1"}, {"A"}, {"Ab", "A-b", ".A.b."}, {"a"}}, dictionary);
  check_order({{"", "\t", "\x7f\x80\xff"},
               {" "},
               {"-"},
               {"a",
                "\x01"
                "a\x80"},
               {"ab", "a\tb"},
               {"~"}},
              printing);
  check_order({{"", "-"}, {"a", "A", "-a"}, {"ab", "A-B"}, {"b"}}, both);
  both.only_printing = true;  // -d is stronger, in any order
  check_order({{"", "-"}, {"\t"}, {"a", "A", "-a"}}, both);
}

TEST_CASE("a text is changed before its value is taken") {
  KeyOptions human, version;
  human.human_numeric = human.fold = version.version = version.only_dictionary = true;
  check_order({{"900", "900x"}, {"1k", "1K"}, {"2m", "2M"}, {"1g"}}, human);
  check_order({{"a1", "a.1", "a-01"}, {"a2", "a.2"}, {"a10"}}, version);
}

TEST_CASE("what the sorter relies on holds for any numbers and months, and for reversed ones") {
  for (const Encoder encoder : {&add_number, &add_general_number, &add_human_number, &add_month}) {
    REQUIRE(rc::check("first bytes", [&] {
      const auto any_text = [] {
        return *rc::gen::element(true, false) ? any_number()
                                              : *rc::gen::element<std::string>("nan", "-inf", "may", "1e-9");
      };
      const std::string first = any_text(), second = *rc::gen::element(first + "1", first + ".1", any_text());
      std::string a = encoded(encoder, first), b = encoded(encoder, second);
      check_whole(a, b);
      complement(a, 0);
      complement(b, 0);
      check_whole(a, b);
    }));
  }
}

TEST_CASE("numbers compare as strtold(3) compares them") {
  REQUIRE(rc::check("-g", [] {
    const auto any_float = [] {
      return fmt::format("{}{}.{}e{}", *rc::gen::element("", "-"), *rc::gen::inRange(0, 20), *rc::gen::inRange(0, 100),
                         *rc::gen::element(0, 1, -1, 5, -4930, 4930, -4945));
    };
    const std::string a = any_float(), b = any_float();
    const long double x = std::strtold(a.c_str(), nullptr), y = std::strtold(b.c_str(), nullptr);
    const std::string first = encoded(&add_general_number, a), second = encoded(&add_general_number, b);
    RC_ASSERT(sign(first.compare(second)) == (x < y ? -1 : x > y ? 1 : 0));
  }));
}

TEST_CASE("a plain decimal number has the value that strtold(3) has of it") {
  REQUIRE(rc::check("-g", [] {
    const auto digits = [](std::size_t length_max) { return any_of("0123456789", length_max); };
    const std::string number = *rc::gen::element("", "-") + ("1" + digits(14)) + *rc::gen::element("", ".") + digits(8);
    RC_ASSERT(encoded(&add_general_number, number) == encoded(&add_general_number, number + "e0"));
  }));
}

TEST_CASE("versions without suffixes compare as a comparison of two texts has them") {
  REQUIRE(rc::check("-V", [] {
    const auto any_version = [] { return "x" + any_of(*rc::gen::element("a0~1", "aZ09-_ "), 8); };  // no "." in it
    const std::string a = any_version(), b = any_version();
    RC_ASSERT(sign(encoded(&add_version, a).compare(encoded(&add_version, b))) == compare_runs(a, b));
  }));
}

}  // namespace pif::sort
