//! How messages are declared, once: for prost, which decodes them, and for [`wire`](super::wire), which looks at them
//! before.

/// Declares messages. `among` gives the values that a number can have.
macro_rules! messages {
    ($(
        $(#[doc = $doc:literal])*
        pub struct $message:ident {$(
            $(#[among($values:ident)])?
            #[prost($kind:ident $(= $form:tt)? $(, $word:ident $(= $value:tt)?)*)]
            pub $field:ident: $type:ty,
        )*}
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, PartialEq, Message)]
        pub struct $message {$(
            #[prost($kind $(= $form)? $(, $word $(= $value)?)*)]
            pub $field: $type,
        )*}

        impl Declared for $message {
            const SCHEMA: Option<fn() -> &'static Schema> = Some(|| {
                static SCHEMA: Schema = Schema {
                    name: stringify!($message),
                    fields: &[$(
                        Field::declared(
                            stringify!($field),
                            stringify!($kind),
                            &[$((stringify!($word), concat!("" $(, $value)?))),*],
                            <$type as Declared>::SCHEMA,
                        )$(.among($values))?,
                    )*],
                };
                &SCHEMA
            });
        }
    )*};
}

/// Declares messages of which one is there at the most.
macro_rules! choices {
    ($(
        $(#[doc = $doc:literal])*
        pub enum $choice:ident {$(
            #[prost($kind:ident $(, $word:ident $(= $value:tt)?)*)]
            $variant:ident($type:ty),
        )*}
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, PartialEq, Oneof)]
        pub enum $choice {$(
            #[prost($kind $(, $word $(= $value)?)*)]
            $variant($type),
        )*}

        impl Declared for $choice {
            const SCHEMA: Option<fn() -> &'static Schema> = Some(|| {
                static SCHEMA: Schema = Schema {
                    name: stringify!($choice),
                    fields: &[$(
                        Field::declared(
                            stringify!($variant),
                            stringify!($kind),
                            &[$((stringify!($word), concat!("" $(, $value)?))),*],
                            <$type as Declared>::SCHEMA,
                        ),
                    )*],
                };
                &SCHEMA
            });
        }
    )*};
}

pub(super) use {choices, messages};
