// The document as it stands in the tree, between two symbols.
    .section .rodata
    .global stitchkitOpenRpcBegin
    .global stitchkitOpenRpcEnd
stitchkitOpenRpcBegin:
    .incbin STITCHKIT_OPENRPC_FILE
stitchkitOpenRpcEnd:
    .byte 0
    .section .note.GNU-stack,"",%progbits
