#include "matcher.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>
#include <hs/hs.h>
#include <re2/filtered_re2.h>
#include <re2/re2.h>

#include "pif/base/assert.h"

namespace pif::search {
namespace {

constexpr std::int64_t kRe2BytesMax = 256 << 20;  // of one program and its automata
constexpr int kAtomBytesMin = 2;                  // shorter strings are in nearly every record
constexpr unsigned kAtomsApart = 64;              // of which it is known which of them a record has
constexpr std::size_t kSetsMax = 1u << 16;        // of strings: whether a record with them may match is kept

struct FreeDatabase {
  void operator()(hs_database_t* database) const { hs_free_database(database); }
};
struct FreeScratch {
  void operator()(hs_scratch_t* scratch) const { hs_free_scratch(scratch); }
};
using Database = std::unique_ptr<hs_database_t, FreeDatabase>;

bool is_word(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (true) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

RE2::Options re2_options(bool ignore_case) {
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);
  options.set_longest_match(true);
  options.set_log_errors(false);
  options.set_case_sensitive(!ignore_case);
  options.set_max_mem(kRe2BytesMax);
  return options;
}

// Without regard to case RE2 takes bytes from 0x80 on for letters of Latin 1. They are parts of UTF-8's.
std::string with_exact_high_bytes(const std::string& pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const bool is_high = static_cast<unsigned char>(c) >= 0x80;
    if (is_high && !in_class) {
      out += fmt::format("(?-i:{})", c);
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
    if (c == '\\' && i + 1 < pattern.size()) out += pattern[++i];
  }
  return out;
}

tl::unexpected<Error> no_pattern(const std::string& pattern, const std::string& why) {
  return fail(Code::kInvalid,
              fmt::format("'{}' is no pattern: {} (-F looks for it as it stands)", pattern.substr(0, 100), why));
}

Result<std::unique_ptr<RE2>> compile_re2(const std::string& text, const RE2::Options& options,
                                         const std::string& pattern) {
  auto made = std::make_unique<RE2>(text, options);
  if (!made->ok()) return no_pattern(pattern, made->error());
  return made;
}

// The bytes of a record that can match: not its delimiter.
std::string_view text_of(std::string_view record, const Format& format) {
  const bool ends = format.kind == RecordKind::kDelimited && record.ends_with(static_cast<char>(format.delimiter));
  return ends ? record.substr(0, record.size() - 1) : record;
}

std::string_view view_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Literal {
  std::string_view text;
  unsigned id = 0;
};

// Null without any.
Result<Database> compile_literals(const std::vector<Literal>& literals, bool ignore_case) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  std::vector<unsigned> ids;
  const std::vector<unsigned> flags(literals.size(), ignore_case ? HS_FLAG_CASELESS : 0u);
  for (const Literal& literal : literals) {
    texts.push_back(literal.text.data());
    lengths.push_back(literal.text.size());
    ids.push_back(literal.id);
  }
  hs_database_t* made = nullptr;
  hs_compile_error_t* error = nullptr;
  if (literals.empty()) return Database();
  hs_compile_lit_multi(texts.data(), flags.data(), ids.data(), lengths.data(), static_cast<unsigned>(texts.size()),
                       HS_MODE_BLOCK, nullptr, &made, &error);
  if (made != nullptr) return Database(made);
  const std::string why = error != nullptr && error->message != nullptr ? error->message : "no reason given";
  hs_free_compile_error(error);
  return fail(Code::kTooLarge, fmt::format("these strings cannot be looked for: {}", why));
}

}  // namespace

struct Matcher::Impl {
  Query query;
  Format format;
  std::vector<std::string> patterns;
  bool has_empty = false;                  // of fixed strings: one that is in every record
  std::unique_ptr<RE2> any;                // whether a record matches; group 1 is the match. Null for fixed strings
  re2::FilteredRE2 filter{kAtomBytesMin};  // each pattern, and which strings a match of it must have
  bool is_exact = false;                   // not too many for bits
  Database database;                       // null: it is of no use

  Status compile();
  Status compile_fixed();
  Status compile_patterns();
  // Whether a fixed string at this place in the text is a match.
  bool counts(std::string_view text, std::size_t begin, std::size_t end) const {
    if (query.whole) return begin == 0 && end == text.size();
    if (!query.words) return true;
    return (begin == 0 || !is_word(text[begin - 1])) && (end == text.size() || !is_word(text[end]));
  }
};

Status Matcher::Impl::compile() {
  patterns = lines_of(query.patterns);
  return query.fixed ? compile_fixed() : compile_patterns();
}

Status Matcher::Impl::compile_fixed() {
  std::vector<Literal> literals;
  for (unsigned i = 0; i < patterns.size(); ++i) {
    has_empty = has_empty || patterns[i].empty();
    if (!patterns[i].empty()) literals.push_back({patterns[i], i});
  }
  PIF_TRY_VALUE(database, compile_literals(literals, query.ignore_case));
  return {};
}

Status Matcher::Impl::compile_patterns() {
  const RE2::Options options = re2_options(query.ignore_case);
  std::string all;
  for (const std::string& pattern : patterns) {
    const std::string text = query.ignore_case ? with_exact_high_bytes(pattern) : pattern;
    PIF_TRY(compile_re2("(" + text + ")", options, pattern));  // alone, for what it says of an error
    int id = 0;
    filter.Add(text, options, &id);
    if (&pattern != &patterns.front()) all += '|';
    all += fmt::format("(?:{})", text);
  }
  const std::string_view before = query.whole ? "^" : query.words ? "(?:^|\\W)" : "";
  const std::string_view behind = query.whole ? "$" : query.words ? "(?:\\W|$)" : "";
  PIF_TRY_VALUE(any, compile_re2(fmt::format("{}({}){}", before, all, behind), options, query.patterns));
  std::vector<std::string> atoms;
  filter.Compile(&atoms);
  std::vector<int> without_atoms;
  if (!atoms.empty()) filter.AllPotentials({}, &without_atoms);
  if (atoms.empty() || !without_atoms.empty()) return {};
  std::vector<Literal> literals;
  is_exact = atoms.size() <= kAtomsApart;
  for (unsigned i = 0; i < atoms.size(); ++i) literals.push_back({atoms[i], is_exact ? i : 0});
  PIF_TRY_VALUE(database, compile_literals(literals, true));  // atoms are in small letters
  return {};
}

Matcher::Matcher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher& Matcher::operator=(Matcher&&) noexcept = default;
Matcher::~Matcher() = default;
bool Matcher::is_prefiltered() const { return impl_->database != nullptr; }

Result<Matcher> Matcher::compile(const Query& query, const Format& format) {
  auto impl = std::make_unique<Impl>();
  impl->query = query;
  impl->format = format;
  PIF_TRY(impl->compile());
  return Matcher(std::move(impl));
}

// ---- scanning -------------------------------------------------------------------------------------------------------

struct Scanner::Scratch {
  std::unique_ptr<hs_scratch_t, FreeScratch> hs;
  std::vector<std::uint64_t> ends;   // of records of the batch, in its bytes
  std::vector<std::uint64_t> found;  // by record: which strings it has, a bit each; 1 if that does not count
  std::unordered_map<std::uint64_t, bool> potentials;  // whether a record with such strings may match
};

namespace {

// Where Vectorscan's matches are in a batch.
struct Finder {
  const Matcher::Impl& matcher;
  std::string_view data;
  const std::vector<std::uint64_t>& ends;
  std::vector<std::uint64_t>& found;
  std::size_t at = 0;  // the record of the last match

  std::uint64_t begin_of(std::size_t record) const { return record == 0 ? 0 : ends[record - 1]; }

  void take(unsigned id, std::uint64_t to) {
    if (to == 0 || to > data.size()) return;
    const bool is_here = begin_of(at) < to && to <= ends[at];
    if (!is_here) at = static_cast<std::size_t>(std::lower_bound(ends.begin(), ends.end(), to) - ends.begin());
    if (!matcher.query.fixed) {
      found[at] |= std::uint64_t{1} << id;
      return;
    }
    if (found[at] != 0) return;
    const std::uint64_t begin = begin_of(at), from = to - matcher.patterns[id].size();
    const std::string_view text = text_of(data.substr(begin, ends[at] - begin), matcher.format);
    const bool is_match = from >= begin && to - begin <= text.size() && matcher.counts(text, from - begin, to - begin);
    found[at] = is_match ? 1 : 0;
  }
};

int take_match(unsigned id, unsigned long long, unsigned long long to, unsigned, void* finder) {
  static_cast<Finder*>(finder)->take(id, to);
  return 0;
}

struct Places {
  const Matcher::Impl& matcher;
  std::string_view text;
  std::vector<Match> all;
};

int take_place(unsigned id, unsigned long long, unsigned long long to, unsigned, void* context) {
  auto& places = *static_cast<Places*>(context);
  const std::size_t end = to, begin = end - places.matcher.patterns[id].size();
  if (places.matcher.counts(places.text, begin, end)) places.all.push_back({begin, end, id});
  return 0;
}

bool goes_before(const Match& a, const Match& b) {
  return std::tuple(a.begin, b.end, a.pattern) < std::tuple(b.begin, a.end, b.pattern);
}

std::vector<Match> without_overlaps(std::vector<Match> all) {
  std::sort(all.begin(), all.end(), goes_before);
  std::vector<Match> kept;
  for (const Match& one : all) {
    if (kept.empty() || one.begin >= kept.back().end) kept.push_back(one);
  }
  return kept;
}

void find_ends(const tool::RowBatch& batch, std::vector<std::uint64_t>& ends) {
  ends.clear();
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < batch.count; ++i) {
    end += batch.record_length > 0 ? batch.record_length : batch.lengths[i];
    ends.push_back(std::min<std::uint64_t>(end, batch.data.size()));
  }
}

}  // namespace

Scanner::Scanner(const Matcher::Impl& matcher, std::unique_ptr<Scratch> scratch)
    : matcher_(&matcher), scratch_(std::move(scratch)) {}
Scanner::Scanner(Scanner&&) noexcept = default;
Scanner::~Scanner() = default;

Result<Scanner> Scanner::open(const Matcher& matcher) {
  auto scratch = std::make_unique<Scratch>();
  hs_scratch_t* made = nullptr;
  if (matcher.impl_->database && hs_alloc_scratch(matcher.impl_->database.get(), &made) != HS_SUCCESS)
    return fail(Code::kTooLarge, "there is no memory to look for these patterns");
  scratch->hs.reset(made);
  return Scanner(*matcher.impl_, std::move(scratch));
}

// A few sets of strings are those of nearly all records.
bool Scanner::may_match(std::uint64_t strings) {
  if (!matcher_->is_exact) return true;
  if (scratch_->potentials.size() > kSetsMax) scratch_->potentials.clear();
  const auto [known, is_new] = scratch_->potentials.try_emplace(strings, false);
  if (!is_new) return known->second;
  std::vector<int> atoms, potentials;
  for (std::uint64_t left = strings; left != 0; left &= left - 1) atoms.push_back(std::countr_zero(left));
  matcher_->filter.AllPotentials(atoms, &potentials);
  known->second = !potentials.empty();
  return known->second;
}

Result<std::vector<std::uint64_t>> Scanner::scan(const tool::RowBatch& batch) {
  const Query& query = matcher_->query;
  std::vector<std::uint64_t>& found = scratch_->found;
  const std::string_view data = view_of(batch.data);
  const bool is_in_all = query.fixed && matcher_->has_empty && !query.whole && !query.words;
  find_ends(batch, scratch_->ends);
  const bool are_candidates = is_in_all || (!query.fixed && !matcher_->database);
  found.assign(batch.count, are_candidates ? 1 : 0);
  if (matcher_->database && !is_in_all && !data.empty()) {
    Finder finder{*matcher_, data, scratch_->ends, found};
    if (data.size() > UINT32_MAX) return fail(Code::kTooLarge, "a batch of more than 4 GiB");
    if (hs_scan(matcher_->database.get(), data.data(), static_cast<unsigned>(data.size()), 0, scratch_->hs.get(),
                take_match, &finder) != HS_SUCCESS)
      return fail(Code::kInternal, "Vectorscan failed");
  }
  std::vector<std::uint64_t> records;
  std::uint64_t begin = 0;
  for (std::uint64_t i = 0; i < batch.count; begin = scratch_->ends[i], ++i) {
    bool matches = found[i] != 0 && may_match(found[i]);
    const auto text = [&] { return text_of(data.substr(begin, scratch_->ends[i] - begin), matcher_->format); };
    if (matches && matcher_->any) matches = RE2::PartialMatch(text(), *matcher_->any);
    if (!matches && matcher_->has_empty) matches = matcher_->counts(text(), 0, 0) || text().empty();
    if (matches != query.invert) records.push_back(i);
  }
  return records;
}

Result<std::vector<Match>> Scanner::matches_in(std::string_view record) {
  const std::string_view text = text_of(record, matcher_->format);
  if (matcher_->query.fixed) {
    Places places{*matcher_, text, {}};
    if (matcher_->database && hs_scan(matcher_->database.get(), text.data(), static_cast<unsigned>(text.size()), 0,
                                      scratch_->hs.get(), take_place, &places) != HS_SUCCESS)
      return fail(Code::kInternal, "Vectorscan failed");
    return without_overlaps(std::move(places.all));
  }
  std::vector<Match> found;
  std::array<re2::StringPiece, 2> groups;
  for (std::size_t at = 0; at < text.size();) {
    if (!matcher_->any->Match(text, at, text.size(), RE2::UNANCHORED, groups.data(), 2)) break;
    const auto begin = static_cast<std::size_t>(groups[1].data() - text.data()), end = begin + groups[1].size();
    if (begin == end) {
      at = end + 1;
      continue;
    }
    found.push_back({begin, end, matcher_->query.tag ? pattern_of(text.substr(begin, end - begin)) : 0});
    at = end;
  }
  return found;
}

std::uint32_t Scanner::pattern_of(std::string_view match) const {
  for (int i = 0; i < matcher_->filter.NumRegexps(); ++i)
    if (matcher_->filter.GetRE2(i).Match(match, 0, match.size(), RE2::ANCHOR_BOTH, nullptr, 0))
      return static_cast<std::uint32_t>(i);
  return 0;
}

}  // namespace pif::search
