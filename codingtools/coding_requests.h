// Parameters and results of the `coding.*` methods as C++ types. Beyond decode() and before encode() there is no JSON.
#pragma once

#include "codingtools/discovery_tools.h"
#include "codingtools/file_tools.h"
#include "codingtools/output_tools.h"
#include "codingtools/run_command.h"
#include "codingtools/toolset.h"
#include "rpc/base/error.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace stitchkit {

struct CreateToolsetParams {
  std::string handle;
  ToolsetRules rules;
};
struct DeleteToolsetParams {
  std::string toolset;
};
struct DeletedToolset {};
struct CreatedToolset {
  std::string toolset;
  boost::json::array tools;  ///< as tool_definitions.h makes them
};

/// One call of a tool.
template <class Input>
struct ToolCall {
  std::string toolset;
  Input input;
  std::size_t bytes = 0;  ///< that it holds in memory while it waits
};

Result<void> decode(boost::json::object& params, CreateToolsetParams& out);
Result<void> decode(boost::json::object& params, DeleteToolsetParams& out);
Result<void> decodeInput(boost::json::object& input, ReadFileInput& out);
Result<void> decodeInput(boost::json::object& input, WriteFileInput& out);
Result<void> decodeInput(boost::json::object& input, EditFileInput& out);
Result<void> decodeInput(boost::json::object& input, ListDirectoryInput& out);
Result<void> decodeInput(boost::json::object& input, GlobInput& out);
Result<void> decodeInput(boost::json::object& input, FileSearch& out);
Result<void> decodeInput(boost::json::object& input, RunCommandInput& out);
Result<void> decodeInput(boost::json::object& input, ReadOutputInput& out);
Result<void> decodeInput(boost::json::object& input, SearchOutputInput& out);

/// The bytes of the texts in a value.
std::size_t textBytes(const boost::json::value& value);

template <class Input>
Result<void> decode(boost::json::object& params, ToolCall<Input>& out) {
  out.toolset = params.at("toolset").get_string();
  boost::json::value& input = params.at("input");
  out.bytes = textBytes(input);
  return decodeInput(input.get_object(), out.input);
}

boost::json::value encode(CreatedToolset result);
boost::json::value encode(DeletedToolset done);
boost::json::value encode(const ReadFileOutput& result);
boost::json::value encode(const WriteFileOutput& result);
boost::json::value encode(const EditFileOutput& result);
boost::json::value encode(const ListDirectoryOutput& result);
boost::json::value encode(const GlobResult& result);
boost::json::value encode(const SearchFilesOutput& result);
boost::json::value encode(const RunCommandOutput& result);
boost::json::value encode(const ReadOutputOutput& result);
boost::json::value encode(const SearchOutputOutput& result);

}  // namespace stitchkit
