// What people type: paths, ranges of records, lengths, lists, delimiters; and the layouts that come of them.
#include <algorithm>

#include "../../net/src/zmq/zap.h"
#include "../../tools/pif/text/text.h"
#include "fuzz.h"
#include "pif/base/path.h"
#include "pif/base/print.h"
#include "pif/base/typed_path.h"
#include "pif/parity/layout.h"

namespace {

using namespace pif;
using fuzz::must;

void check_paths(std::string_view text) {
  if (const auto parsed = parse_path(text)) {
    must(parse_path(*parsed).value_or("") == *parsed, "a parsed path parses to itself");
    must(parsed->front() == '/', "a parsed path is absolute");
    (void)cli::base_name(*parsed);
  }
  if (const auto checked = check_path(text)) {
    must(checked->empty() || (checked->front() == '/' && checked->back() != '/'), "a checked path has one form");
    must(checked->find("/../") == std::string_view::npos, "a checked path goes nowhere but down");
    must(is_utf8(*checked), "a checked path is UTF-8");
  }
}

void check_range(std::string_view text, std::uint64_t count) {
  const auto range = cli::parse_range(text);
  if (!range) return;
  must(!range->end || range->begin <= *range->end, "a range rises");
  const Range clipped = range->clip(count);
  must(clipped.begin <= clipped.end && clipped.end <= count, "a clipped range is in the file");
}

void check_numbers(std::string_view text) {
  if (const auto number = cli::parse_number(text, "it"))
    must(cli::parse_number(std::to_string(*number), "it").value() == *number, "a number is its digits");
  (void)cli::parse_delimiter(text);
  net::Identity holder;
  must(!net::parse_holder(text, holder) || !holder.gids.empty(), "a key's holder has a group");
  must(one_line(text).find('\n') == std::string::npos, "one line is one line");
}

void check_layout(std::string_view text, std::uint32_t width, std::uint64_t record) {
  const auto bevies = cli::parse_list(text, "bevies");
  if (!bevies) return;
  const auto layout = parity::Layout::make(width, *bevies);
  if (!layout) return;
  record &= (std::uint64_t{1} << 40) - 1;
  const Cell cell = layout->locate(record);
  must(cell.lfs < width && layout->record_at(cell) == record, "every record has its own cell");
  if (layout->has_parity()) {
    const auto members = layout->members_of(layout->parity_of(cell));
    must(std::find(members.begin(), members.end(), cell) != members.end(), "and is a member of its parity's group");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  const auto kind = in.byte() % 4;
  const auto count = in.wide();
  const auto text = in.rest();
  if (kind == 0) check_paths(text);
  if (kind == 1) check_range(text, count);
  if (kind == 2) check_numbers(text);
  if (kind == 3) check_layout(text, static_cast<std::uint32_t>(count & 0x1fff), count >> 16);
  return 0;
}

std::vector<std::pair<std::string, std::string>> pif::fuzz::seeds() {
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&out](unsigned kind, std::uint64_t count, std::initializer_list<std::string_view> texts) {
    for (const auto text : texts)
      out.emplace_back("kind-" + std::to_string(kind) + "-" + std::to_string(out.size()),
                       Output().byte(kind).wide(count).bytes(text).str());
  };
  add(0, 0,
      {"/", "/a/b", "pif:/a//b/", "/a/../b", "/\xc3\xa4/\xf0\x9f\x98\x80", "/\xc0\xaf", "a", "", "/a/./b",
       "/\xed\xa0\x80"});
  add(1, 100, {"1:3", ":", "5:", ":7", "3:1", "18446744073709551615:", "0:18446744073709551616", "-1:2", "1"});
  add(2, 0, {"17", "\\n", "0x2c", "0xFF", "x", "1000 1000,4,27", "1000 ", "4294967296 1", "a\n\tb"});
  add(3, (std::uint64_t{12345} << 16) | 8, {"", "4,4", "2,2,2,2", "2,3", "4294967295,4294967295", "1,1"});
  add(3, (std::uint64_t{9} << 16) | 10, {"2,3,2,3", "5,5"});
  return out;
}
