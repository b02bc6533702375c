#include "printer.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/tool/read_records.h"

namespace pif::search {
namespace {

constexpr std::uint64_t kNeighboursAtOnce = 4096;

}  // namespace

void Printer::add(RecordNumber number, std::string_view record, char mark) {
  std::string line;
  if (!options_.name.empty()) line += options_.name + mark;
  if (options_.numbers) line += fmt::format("{}{}", number + 1, mark);
  line += record;
  if (!record.ends_with('\n')) line += '\n';
  output_.add(line);
}

Status Printer::print_neighbours(RecordNumber begin, RecordNumber end) {
  while (begin < end) {
    const std::uint64_t count = std::min(end - begin, kNeighboursAtOnce);
    PIF_TRY_VALUE(const RecordBatch batch, tool::read_records(file_, file_length_, begin, count));
    if (batch.lengths.empty()) break;
    std::string_view rest(reinterpret_cast<const char*>(batch.data.data()), batch.data.size());
    for (const std::uint32_t length : batch.lengths) {
      add(begin++, rest.substr(0, length), '-');
      rest.remove_prefix(length);
    }
  }
  next_ = end;
  return {};
}

Status Printer::end() {
  if (!last_ || options_.after == 0) return {};
  return print_neighbours(next_, std::min(file_length_.records, *last_ + 1 + options_.after));
}

Status Printer::print(RecordNumber number, std::string_view record) {
  const bool has_neighbours = options_.before > 0 || options_.after > 0;
  if (has_neighbours && last_ != number) {
    const RecordNumber begin = number - std::min(number, options_.before);
    if (last_) PIF_TRY(print_neighbours(next_, std::min(number, *last_ + 1 + options_.after)));
    if (last_ ? begin > next_ : options_.is_next) output_.add("--\n");
    PIF_TRY(print_neighbours(std::max(begin, next_), number));
  }
  add(number, record, ':');
  last_ = number;
  next_ = number + 1;
  return {};
}

}  // namespace pif::search
