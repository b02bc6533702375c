#include "messages.h"

#include <cmath>

#include <fmt/format.h>

namespace pif::sort {
namespace {

constexpr const char* kController = "the controller";
constexpr double kSecondsMax = 1e9;  // a sort takes less: what is beyond would fit no Duration

void pack_letters(const KeyLetters& letters, message::JobSpec& spec) {
  spec.set_numeric(letters.numeric);
  spec.set_reverse(letters.reverse);
  spec.set_skip_blanks(letters.skip_blanks);
  spec.set_general_numeric(letters.general_numeric);
  spec.set_human_numeric(letters.human_numeric);
  spec.set_month(letters.month);
  spec.set_version(letters.version);
  spec.set_only_dictionary(letters.only_dictionary);
  spec.set_only_printing(letters.only_printing);
  spec.set_fold(letters.fold);
}

void unpack_letters(const message::JobSpec& spec, KeyLetters& letters) {
  letters.numeric = spec.numeric();
  letters.reverse = spec.reverse();
  letters.skip_blanks = spec.skip_blanks();
  letters.general_numeric = spec.general_numeric();
  letters.human_numeric = spec.human_numeric();
  letters.month = spec.month();
  letters.version = spec.version();
  letters.only_dictionary = spec.only_dictionary();
  letters.only_printing = spec.only_printing();
  letters.fold = spec.fold();
}

bool is_time(double seconds) { return seconds >= 0 && seconds <= kSecondsMax; }

}  // namespace

std::string pack(const SortOptions& wanted) {
  message::JobSpec spec;
  for (const std::string& key : wanted.keys.keys) spec.add_keys(key);
  if (wanted.keys.separator) spec.set_separator(std::string(1, *wanted.keys.separator));
  pack_letters(wanted.keys, spec);
  spec.set_unique(wanted.unique);
  spec.set_memory(wanted.memory);
  spec.set_merge(static_cast<message::MergeKind>(wanted.merge));
  spec.set_token_batch(wanted.token_batch);
  spec.set_check(wanted.check);
  spec.set_top(wanted.top);
  spec.set_merge_inputs(wanted.merge_inputs);
  spec.set_csv(wanted.keys.csv);
  spec.set_header_records(wanted.header_records);
  for (const std::string& record : wanted.header) spec.add_header(record);
  return spec.SerializeAsString();
}

Result<SortOptions> unpack_options(std::string_view bytes) {
  PIF_TRY_VALUE(const auto spec, tool::parse_message<message::JobSpec>(bytes, kController));
  if (!message::MergeKind_IsValid(spec.merge()))
    return tool::sent_nonsense(kController, fmt::format("merge {}", static_cast<int>(spec.merge())));
  if (spec.has_separator() && spec.separator().size() != 1)
    return tool::sent_nonsense(kController, fmt::format("a separator of {} characters", spec.separator().size()));
  SortOptions wanted;
  wanted.keys.keys.assign(spec.keys().begin(), spec.keys().end());
  if (spec.has_separator()) wanted.keys.separator = spec.separator()[0];
  unpack_letters(spec, wanted.keys);
  wanted.unique = spec.unique();
  wanted.memory = spec.memory();
  wanted.merge = static_cast<MergeKind>(spec.merge());
  wanted.token_batch = spec.token_batch();
  wanted.check = spec.check();
  wanted.top = spec.top();
  wanted.merge_inputs = spec.merge_inputs();
  wanted.keys.csv = spec.csv();
  wanted.header_records = spec.header_records();
  wanted.header.assign(spec.header().begin(), spec.header().end());
  return wanted;
}

std::string pack(const Outcome& outcome) {
  message::Outcome out;
  out.set_records(outcome.put_out.records);
  out.set_bytes(outcome.put_out.bytes);
  out.set_hops(outcome.counts.hops);
  out.set_crossings(outcome.counts.crossings);
  out.set_acted_ns(std::chrono::nanoseconds(outcome.counts.acted).count());
  out.set_sort_seconds(outcome.sort_seconds);
  out.set_merge_seconds(outcome.merge_seconds);
  return out.SerializeAsString();
}

Result<Outcome> unpack_outcome(std::string_view bytes, std::uint32_t rank, const FileLength& most) {
  PIF_TRY_VALUE(const auto from, tool::parse_message<message::Outcome>(bytes, rank));
  if (from.records() > most.records || from.bytes() > most.bytes)
    return tool::sent_nonsense(rank, fmt::format("it put out {} records of {} bytes, where the inputs have {} of {}",
                                                 from.records(), from.bytes(), most.records, most.bytes));
  if (from.acted_ns() < 0 || !is_time(from.sort_seconds()) || !is_time(from.merge_seconds()))
    return tool::sent_nonsense(rank, fmt::format("it took {} s and {} s", from.sort_seconds(), from.merge_seconds()));
  Outcome outcome;
  outcome.put_out = {from.records(), from.bytes()};
  outcome.counts = {from.hops(), from.crossings(), std::chrono::nanoseconds(from.acted_ns())};
  outcome.sort_seconds = from.sort_seconds();
  outcome.merge_seconds = from.merge_seconds();
  return outcome;
}

std::string pack(const CheckOutcome& outcome) {
  message::CheckResult out;
  out.set_is_done(outcome.is_done);
  if (outcome.suspect) out.set_suspect(*outcome.suspect);
  out.set_error(outcome.error);
  out.set_bytes(outcome.bytes);
  return out.SerializeAsString();
}

Result<CheckOutcome> unpack_check(std::string_view bytes, std::uint32_t rank, const FileLength& input) {
  PIF_TRY_VALUE(const auto from, tool::parse_message<message::CheckResult>(bytes, rank));
  if (from.bytes() > input.bytes || (from.has_suspect() && from.suspect() >= input.records))
    return tool::sent_nonsense(rank, fmt::format("record {} and {} bytes of a file of {} records and {} bytes",
                                                 from.suspect(), from.bytes(), input.records, input.bytes));
  CheckOutcome outcome;
  outcome.is_done = from.is_done();
  if (from.has_suspect()) outcome.suspect = from.suspect();
  outcome.error = from.error();
  outcome.bytes = from.bytes();
  return outcome;
}

}  // namespace pif::sort
