// Texts whose records end where only their syntax says (CSV, FASTA, FASTQ) into files of variable records.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pif/client/bulk.h"

namespace pif::cli {

enum class TextKind : std::uint8_t {
  kPlain,  // cut by the file's format
  kCsv,    // RFC 4180: records end at line breaks outside of quotes
  kFasta,  // a record is an entry: a line that begins with '>', and all up to the next such line
  kFastq   // a record is an entry: @title, the sequence, +, as many qualities; each on one line or several
};

// Finds the ends of records in a text that comes in pieces. Not thread-safe.
class RecordCutter {
 public:
  virtual ~RecordCutter() = default;
  // Adds the lengths of the records that end in `text`, which begins with a record. Bytes behind them come again, with
  // more. is_last: nothing more comes; all is to be cut, and a line end that is missing may be added. kCorrupt: it is
  // no such text; "a quote is not closed", for a caller that knows the number of the record behind those.
  [[nodiscard]] virtual Status cut(std::string& text, bool is_last, std::vector<std::uint32_t>& lengths) = 0;
};
// kind: any but kPlain.
std::unique_ptr<RecordCutter> cutter_of(TextKind kind);

// All records from `fd` (of CSV those behind the header record) into a file being created of variable records. options:
// `progress` and `cancel` count. kCorrupt: as RecordCutter; kTooLarge: a record over kRecordLengthMax; else the errors
// of `fd` and of File::write_batch().
[[nodiscard]] Result<BulkCounts> import_entries(File& file, int fd, TextKind kind, const std::string& name,
                                                const BulkOptions& options);

}  // namespace pif::cli
