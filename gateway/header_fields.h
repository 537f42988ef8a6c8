// Names and values of HTTP header fields, as far as a policy may speak of them (PROTOCOL.md, 6).
#pragma once

#include <string>
#include <string_view>

namespace stitchkit {

/// An HTTP token (RFC 9110, 5.6.2): what a name of a field or a method is made of.
bool isHttpToken(std::string_view text);

/// ASCII letters only; other bytes stay.
std::string lowerCaseAscii(std::string_view text);
/// Whether `text` is `lower`, but for the case of ASCII letters.
bool equalsAscii(std::string_view text, std::string_view lower) noexcept;

/// The name as a server may read it that makes variables of names, as CGI does: lower-case, `_` as `-`. Names that
/// are equal so may mean the same to an upstream.
std::string foldedFieldName(std::string_view name);

/// Fields that frame a message, that are about one connection, or that change how the body has to be read: the gateway
/// makes or drops them itself. No policy names them, neither to inject nor to let through.
/// @param folded as foldedFieldName() gives it.
bool isReservedField(std::string_view folded);

/// A `Content-Length` (RFC 9110, 8.6): digits and nothing else, and few enough for 64 bits.
bool isContentLength(std::string_view text) noexcept;

/// What is wrong with a value: a sentence's end, which never repeats it. "" when nothing is. Values are Latin-1
/// without control characters of ASCII but tabs, and without white space at either end.
/// @param utf8 well-formed.
std::string_view fieldValueFault(std::string_view utf8);

/// The bytes that go out for a value without a fault.
std::string latin1(std::string_view utf8);

/// The other way.
std::string utf8OfLatin1(std::string_view bytes);

}  // namespace stitchkit
