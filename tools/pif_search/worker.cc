// The worker's part: batches of records, several at once where it has several cores.
#include <algorithm>
#include <optional>

#include "pif/base/packed.h"
#include "pif/tool/head.h"
#include "pif/tool/records_tool.h"
#include "pif/tool/stream.h"
#include "search.h"

namespace pif::search {
namespace {

// Batches that threads look through at the same time, and what they found.
struct Lane {
  Scanner scanner;
  tool::RowBatch batch;
  std::vector<std::uint64_t> found;
};

// One match, as it is printed.
std::string text_of(const Query& query, const Match& match, std::span<const std::byte> record) {
  std::string text;
  if (query.tag) text = std::to_string(match.pattern + 1) + "\t";
  return text.append(reinterpret_cast<const char*>(record.data()) + match.begin, match.end - match.begin);
}

class Looking {
 public:
  struct Where {
    std::uint32_t number;
    tool::Input& input;
  };
  Looking(tool::Worker& worker, Where where, const Query& query, std::vector<Lane>& lanes, tool::RecordStream& stream)
      : worker_(worker), number_(where.number), input_(where.input), query_(query), lanes_(lanes), stream_(stream) {}

  Status run() {
    while (!is_enough()) {
      std::size_t filled = 0;
      while (filled < lanes_.size()) {
        PIF_TRY_VALUE(const bool more, input_.next(lanes_[filled].batch));
        if (!more) break;
        ++filled;
      }
      if (filled == 0) break;
      PIF_TRY(worker_.run_tasks(filled, [this](std::size_t i) -> Status {
        PIF_TRY_VALUE(lanes_[i].found, lanes_[i].scanner.scan(lanes_[i].batch));
        return {};
      }));
      for (std::size_t i = 0; i < filled; ++i) PIF_TRY(tell(lanes_[i]));
      worker_.progress(input_.bytes_read(), input_.bytes());
    }
    return {};
  }
  std::uint64_t count() const { return count_; }

 private:
  // The first records of all have no more of this LFS among them.
  bool is_enough() const { return query_.max > 0 && count_ >= query_.max; }

  Status tell(Lane& lane) {
    if (!query_.count) PIF_TRY(put_records(lane));
    count_ += lane.found.size();
    if (query_.count) return {};
    return stream_.pass({number_, input_.layout().record_at({input_.index(), lane.batch.first + lane.batch.count})});
  }

  Status put_records(Lane& lane) {
    std::span<const std::byte> rest(lane.batch.data);
    std::size_t next = 0;
    for (std::uint64_t i = 0; i < lane.batch.count && next < lane.found.size(); ++i) {
      const std::size_t length = lane.batch.record_length > 0
                                     ? std::min<std::size_t>(lane.batch.record_length, rest.size())
                                     : lane.batch.lengths[i];
      if (lane.found[next] == i) {
        ++next;
        PIF_TRY(put_record(lane, lane.batch.first + i, rest.first(length)));
      }
      rest = rest.subspan(length);
    }
    return {};
  }

  Status put_record(Lane& lane, Row row, std::span<const std::byte> record) {
    const tool::StreamKey key{number_, input_.layout().record_at({input_.index(), row})};
    if (!query_.only_match || query_.invert) return stream_.put(key, record);
    PIF_TRY_VALUE(const auto matches,
                  lane.scanner.matches_in({reinterpret_cast<const char*>(record.data()), record.size()}));
    for (const Match& match : matches) {
      const std::string text = text_of(query_, match, record);
      PIF_TRY(stream_.put(key, std::as_bytes(std::span(text))));
    }
    return {};
  }

  tool::Worker& worker_;
  const std::uint32_t number_;
  tool::Input& input_;
  const Query& query_;
  std::vector<Lane>& lanes_;
  tool::RecordStream& stream_;
  std::uint64_t count_ = 0;
};

Result<std::vector<Lane>> make_lanes(const Matcher& matcher, unsigned count) {
  std::vector<Lane> lanes;
  for (unsigned i = 0; i < count; ++i) {
    PIF_TRY_VALUE(Scanner scanner, Scanner::open(matcher));
    lanes.push_back({std::move(scanner), {}, {}});
  }
  return lanes;
}

// What is found goes to a file, with other numbers.
class Choosing final : public tool::RecordFunction {
 public:
  static Result<std::unique_ptr<RecordFunction>> make(const Query& query, const Format& format) {
    auto made = std::make_unique<Choosing>(query);
    PIF_TRY_VALUE(made->matcher_, Matcher::compile(query, format));
    PIF_TRY_VALUE(auto scanner, Scanner::open(*made->matcher_));
    made->scanner_.emplace(std::move(scanner));
    return made;
  }
  explicit Choosing(const Query& query) : query_(query) {}

  Status take_batch(const tool::Input&, tool::RowBatch& batch, tool::Records& out,
                    std::vector<std::uint32_t>& counts) override {
    PIF_TRY_VALUE(const auto found, scanner_->scan(batch));
    records_ += found.size();
    Status status;
    std::size_t next = 0, i = 0;
    batch.for_each([&](std::span<const std::byte> record) {
      const std::size_t before = out.lengths().size();
      if (next < found.size() && found[next] == i++) {
        ++next;
        if (status) status = add(record, out);
      }
      counts.push_back(static_cast<std::uint32_t>(out.lengths().size() - before));
    });
    return status;
  }
  std::string found() override { return packed(std::span<const std::uint64_t>(&records_, 1)); }
  Status add(std::string_view other) override {
    const auto number = PackedNumbers<std::uint64_t>::all_of(std::as_bytes(std::span(other)), 1);
    if (!number) return fail(Code::kInvalid, "a count that cannot be read");
    records_ += (*number)[0];
    return {};
  }

 private:
  Status add(std::span<const std::byte> record, tool::Records& out) {
    if (!query_.only_match || query_.invert) {
      out.add(record);
      return {};
    }
    PIF_TRY_VALUE(const auto matches,
                  scanner_->matches_in({reinterpret_cast<const char*>(record.data()), record.size()}));
    for (const Match& match : matches) out.add(text_of(query_, match, record) + '\n');
    return {};
  }

  const Query query_;
  std::optional<Matcher> matcher_;
  std::optional<Scanner> scanner_;
  std::uint64_t records_ = 0;
};

Status work_to_file(tool::Worker& worker, const Query& query) {
  PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
  PIF_TRY_VALUE(tool::Output* const output, worker.output(0));
  const Format format = input->format();
  return tool::make_records(worker, *input, output, [&](std::string_view) { return Choosing::make(query, format); });
}

}  // namespace

Status work(tool::Worker& worker) {
  PIF_TRY_VALUE(const Query query, worker.value_as<Query>());
  if (query.to_file) return work_to_file(worker, query);
  tool::RecordStream stream(worker);
  std::optional<Matcher> matcher;
  std::optional<Format> format;
  std::vector<Lane> lanes;  // of this matcher
  std::vector<std::uint64_t> counts(worker.input_count());
  for (std::uint32_t i = 0; i < counts.size(); ++i) {
    PIF_TRY_VALUE(tool::Input* const input, worker.input(i));
    if (!input->is_here() || input->rows() == 0) continue;
    if (format != input->format()) {
      PIF_TRY_VALUE(matcher, Matcher::compile(query, input->format()));
      format = input->format();
      PIF_TRY_VALUE(lanes, make_lanes(*matcher, worker.threads()));
    }
    Looking looking(worker, {i, *input}, query, lanes, stream);
    PIF_TRY(looking.run());
    counts[i] = looking.count();
  }
  worker.set_result(packed(std::span<const std::uint64_t>(counts)));
  return stream.end();
}

}  // namespace pif::search
