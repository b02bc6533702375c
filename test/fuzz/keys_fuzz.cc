// What records are sorted by, as people type it, on records of any kind; and what the processes of a
// sort send one another.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>

#include "../../tools/pif_sort/keys/key_spec.h"
#include "../../tools/pif_sort/messages.h"
#include "../../tools/pif_sort/output/tails.h"
#include "fuzz.h"

namespace {

using namespace pif;
using namespace pif::sort;
using fuzz::must;

constexpr std::uint32_t kLengthMax = 64;  // of fixed records: longer ones are no different
enum Flags : unsigned { kSeparator = 1, kNumericAll = 2, kReverseAll = 4, kBlanksAll = 8, kOthersAll = 16 };

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
int sign(int value) { return (value > 0) - (value < 0); }

Format format_of(fuzz::Input& in) {
  const auto kind = in.byte() % 3;
  const auto value = in.byte();
  if (kind == 0) return Format::fixed(value % kLengthMax + 1);
  return kind == 1 ? Format::variable() : Format::delimited(value);
}

// The ways to compare texts that are in a byte of their own.
void set_others(unsigned ways, KeyOptions& options) {
  options.general_numeric = (ways & 1) != 0;
  options.human_numeric = (ways & 2) != 0;
  options.month = (ways & 4) != 0;
  options.version = (ways & 8) != 0;
  options.only_dictionary = (ways & 16) != 0;
  options.only_printing = (ways & 32) != 0;
  options.fold = (ways & 64) != 0;
  options.null_ended = (ways & 128) != 0;
}

KeyOptions options_of(fuzz::Input& in) {
  KeyOptions options;
  const auto flags = in.byte();
  const auto separator = in.byte();
  if ((flags & kSeparator) != 0) options.separator = static_cast<char>(separator);
  options.numeric = (flags & kNumericAll) != 0;
  options.reverse = (flags & kReverseAll) != 0;
  options.skip_blanks = (flags & kBlanksAll) != 0;
  if ((flags & kOthersAll) != 0) set_others(in.byte(), options);
  for (std::string_view specs = in.text(); !specs.empty();) {
    const std::size_t end = std::min(specs.find('\n'), specs.size());
    options.keys.emplace_back(specs.substr(0, end));
    specs.remove_prefix(std::min(end + 1, specs.size()));
  }
  return options;
}

std::string record_of(fuzz::Input& in, const Format& format) {
  std::string record(in.text());
  if (format.is_fixed()) record.resize(format.record_length);
  return record;
}

struct Keyed {
  Keyed(const KeyMaker& maker, fuzz::Input& in, const Format& format) : record(record_of(in, format)) {
    made = maker.make_key(bytes_of(record), key).has_value();
    must(maker.make_full_key(bytes_of(record), 7, full).has_value() == made, "one key can be made if the other can");
    if (!made) return;
    (void)maker.make_full_key(bytes_of(record), 8, next);
    must(full.size() <= maker.full_key_bytes(key), "full keys have the bytes they may have");
    must(before(full, next), "the earlier of equal records comes first");
    if (const auto length = maker.fixed_length()) must(key.size() == *length, "keys of a fixed length have it");
    if (const auto offset = maker.plain_offset())
      must(record.substr(*offset, key.size()) == key, "a plain key is bytes of the record");
  }
  std::string record, key, full, next;
  bool made = false;
};

void check_keys(fuzz::Input& in) {
  const Format format = format_of(in);
  const KeyOptions options = options_of(in);
  const auto maker = KeyMaker::make(options, format);
  if (!maker) return must(maker.error().code == Code::kInvalid, "what is wrong with a key is its writer's fault");
  const Keyed a(*maker, in, format), b(*maker, in, format);
  if (!a.made || !b.made) return;
  const int order = sign(a.key.compare(b.key));
  must(sign(a.full.compare(b.full)) == order, "full keys compare as keys do");
  must(before(a.full, b.full) == (order < 0) && before(b.full, a.full) == (order > 0), "in one order");
  must(order == 0 || before(a.next, b.full) == (order < 0), "a record's number counts only between equals");
  must(a.record != b.record || order == 0, "equal records have equal keys");
}

// The number that sort(1) -n sees; rounded, which keeps the order.
long double number_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
  std::size_t end = !text.empty() && text[0] == '-' ? 1 : 0;
  const auto skip_digits = [&] { end = std::min(text.find_first_not_of("0123456789", end), text.size()); };
  skip_digits();
  if (end < text.size() && text[end] == '.') {
    ++end;
    skip_digits();
  }
  return std::strtold(std::string(text.substr(0, end)).c_str(), nullptr);
}

void check_numbers(fuzz::Input& in) {
  const std::string_view first = in.text(), second = in.rest();
  std::string a, b;
  add_number(first, a);
  add_number(second, b);
  const long double x = number_at(first), y = number_at(second);
  must(x >= y || a < b, "numbers compare as they do");
  must(x <= y || b < a, "either way round");
  must(a != b || x == y, "equal keys are of equal numbers");
  const auto is_exact = [](std::string_view text) { return text.size() <= std::numeric_limits<long double>::digits10; };
  must(a == b || x != y || !is_exact(first) || !is_exact(second), "equal numbers have equal keys");
}

std::string zero_padded(std::string key) {
  key.resize(kWholeBytes, '\0');
  return key;
}

// What encode.h says of all encodings, and of those that a few bytes tell apart.
void check_encodings(fuzz::Input& in) {
  constexpr void (*kEncoders[])(std::string_view, std::string&) = {&add_number, &add_general_number, &add_human_number,
                                                                   &add_month, &add_version};
  const auto which = in.byte() % std::size(kEncoders);
  const bool is_reversed = in.byte() % 2 != 0;
  std::string a, b;
  kEncoders[which](in.text(), a);
  kEncoders[which](in.rest(), b);
  must(a == b || (b.substr(0, a.size()) != a && a.substr(0, b.size()) != b), "no encoding begins another one");
  if (kEncoders[which] == &add_version) return;
  if (is_reversed) complement(a, 0);
  if (is_reversed) complement(b, 0);
  const std::string x = zero_padded(a), y = zero_padded(b);
  must(a.size() <= kWholeBytes || x[kWholeBytes - 1] != 0, "a byte says that there is more");
  const bool is_whole = x[kWholeBytes - 1] == 0 || y[kWholeBytes - 1] == 0;
  must(!is_whole || sign(x.compare(y)) == sign(a.compare(b)), "what is whole is compared by its first bytes");
}

void check_words(fuzz::Input& in) {
  const std::string_view text = in.text(), body = in.rest();
  // What is taken from another process is taken again as it is sent on.
  if (const auto wanted = unpack_options(text))
    must(pack(*unpack_options(pack(*wanted))) == pack(*wanted), "a job is what was sent");
  if (const auto outcome = unpack_outcome(text, 1, {1000, 1000}))
    must(pack(*unpack_outcome(pack(*outcome), 1, {1000, 1000})) == pack(*outcome), "an outcome is what was sent");
  if (const auto tails = unpack_tails(text, 1, 2))
    must(unpack_tails(pack_tails(*tails), 1, 2).value() == *tails, "tails are what was sent");
  const auto keys = KeyList::unpack(bytes_of(body));
  if (!keys) return;
  const net::Buffer packed = keys->pack(0);
  must(packed.size() == body.size() && std::memcmp(packed.data(), body.data(), body.size()) == 0,
       "a list of keys is what was sent");
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < keys->size(); ++i) bytes += (*keys)[i].size();
  must(bytes + (keys->size() + 1) * sizeof(std::uint32_t) == body.size(), "keys are the bytes they came in");
}

std::string key_input(unsigned kind, unsigned value, unsigned flags, char separator, std::string_view specs,
                      std::string_view a, std::string_view b) {
  return fuzz::Output()
      .byte(0)
      .byte(kind)
      .byte(value)
      .byte(flags)
      .byte(static_cast<unsigned char>(separator))
      .text(specs)
      .text(a)
      .text(b)
      .str();
}

std::string words_input(std::initializer_list<std::string_view> keys) {
  KeyList list;
  for (const auto key : keys) list.add(key, 5);
  const net::Buffer body = list.pack(0);
  return fuzz::Output()
      .byte(2)
      .text(pack_tails(std::vector<component::Tail>{{1, 2, 3, 4}, {5, 6, 7, 8}}))
      .bytes({reinterpret_cast<const char*>(body.data()), body.size()})
      .str();
}

SortOptions a_job() {
  SortOptions wanted;
  wanted.keys.keys = {"0:3"};
  wanted.keys.separator = ',';
  wanted.merge = MergeKind::kToken;
  return wanted;
}

Outcome an_outcome() {
  Outcome outcome;
  outcome.put_out = {7, 70};
  outcome.sort_seconds = 1.5;
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  const auto kind = in.byte() % 4;
  if (kind == 0) check_keys(in);
  if (kind == 1) check_numbers(in);
  if (kind == 2) check_words(in);
  if (kind == 3) check_encodings(in);
  return 0;
}

std::vector<std::pair<std::string, std::string>> pif::fuzz::seeds() {
  const std::string_view text = "b,a c\n", other = "a\t12.50,-3\n";
  return {
      {"whole", key_input(2, '\n', 0, 0, "", text, other)},
      {"fields", key_input(2, '\n', kSeparator, ',', "2,2\n1.2,1n", text, other)},
      {"letters", key_input(2, '\n', kBlanksAll | kNumericAll, 0, "1.3br,2.2bn\n3,1\n2,2.0r", text, other)},
      {"numeric", key_input(1, 0, kNumericAll | kReverseAll, 0, "", "-12.5", "-12.50")},
      {"bytes", key_input(0, 19, 0, 0, "4:6", "0123456789abcdefghij", "0123456789")},
      {"numbers", key_input(0, 31, 0, 0, "0:4:u\n4:8:ibe\n12:8:fr\n20:2:ule\n22:4:fber\n26:3:br", "0123456789", "abc")},
      {"short", key_input(1, 0, 0, 0, "4:4:u", "abc", "abcdefgh")},
      {"beyond", key_input(1, 0, 0, 0, "4294967295:4294967295", "abc", "abcdefgh")},
      {"wrong", key_input(1, 0, 0, 0, "0\n1.0\n1,0\n:1\n1:0\n1:3:u\n1:1:q\n4294967296", "", "")},
      {"compare", fuzz::Output().byte(1).text(" -0012.50e").bytes("12.5").str()},
      {"versions", key_input(2, '\n', 0, 0, "1V\n2,2df\n3Vir", "a-1.10.tar.gz B.2 x~", "a-1.9.tar.gz b-2 x")},
      {"values", key_input(2, 0, kSeparator, ':', "1g\n2,2h\n3Mf,3r", "1e-3:12.5K:dec", "nan:-.5m: Jan")},
      {"contradiction", key_input(2, '\n', 0, 0, "1gn", "", "")},
      {"human", fuzz::Output().byte(3).byte(2).byte(0).text("-12.5K").bytes("1234567890123456789G").str()},
      {"general", fuzz::Output().byte(3).byte(1).byte(1).text("0x1.8p-16400").bytes("-nan(7)").str()},
      {"month", fuzz::Output().byte(3).byte(3).byte(1).text(" december").bytes("ma").str()},
      {"version", fuzz::Output().byte(3).byte(4).byte(0).text(".a0.c").bytes(".a.c~").str()},
      {"list", words_input({"a", "", std::string_view("\0\xff", 2)})},
      {"empty-list", words_input({})},
      {"job", fuzz::Output().byte(2).text(pack(a_job())).str()},
      {"outcome", fuzz::Output().byte(2).text(pack(an_outcome())).str()}};
}
